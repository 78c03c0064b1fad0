"""Checkpoints: when they are taken, how they are written, by whom, and how a daemon resumes."""
