"""Outputs of the daemon: predictions and dead letters."""
