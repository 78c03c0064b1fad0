"""Kafka over confluent-kafka, which wraps the C library librdkafka: faster, an extra."""

from streamlearn.daemon.kafka.rdkafka.reader import RdReader
from streamlearn.daemon.kafka.rdkafka.sink import RdSink

__all__ = ["RdReader", "RdSink"]
