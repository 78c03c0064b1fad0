"""What each command does. A module is imported when its command runs."""
