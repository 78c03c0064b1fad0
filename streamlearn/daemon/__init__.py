"""The daemon: poll, decode, predict, learn, account, checkpoint; the only part to know Kafka."""
