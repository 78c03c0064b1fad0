"""Where predictions and dead letters go."""
