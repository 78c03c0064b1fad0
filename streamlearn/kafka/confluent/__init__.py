"""Kafka over confluent-kafka, which wraps the C library librdkafka: faster, an extra."""

from streamlearn.kafka.confluent.reader import RdReader
from streamlearn.kafka.confluent.sink import RdSink

__all__ = ["RdReader", "RdSink"]
