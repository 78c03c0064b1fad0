"""Kafka over confluent-kafka, which wraps the C library librdkafka: an extra, and faster."""

from streamlearn.kafka.confluent.reader import ConfluentReader
from streamlearn.kafka.confluent.sink import ConfluentSink

__all__ = ["ConfluentReader", "ConfluentSink"]
