"""Linear models as river estimators, their presets, and their files."""
