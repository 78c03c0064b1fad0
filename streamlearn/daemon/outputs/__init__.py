"""What the daemon publishes: predictions and dead letters."""
