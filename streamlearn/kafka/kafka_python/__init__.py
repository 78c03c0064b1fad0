"""Kafka over kafka-python, which is pure Python: the default."""

from streamlearn.kafka.kafka_python.reader import PureReader
from streamlearn.kafka.kafka_python.sink import PureSink

__all__ = ["PureReader", "PureSink"]
