"""The daemon: poll, decode, predict, learn, publish, measure, checkpoint."""
