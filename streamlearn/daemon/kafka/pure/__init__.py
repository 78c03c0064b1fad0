"""Kafka over kafka-python, which is pure Python: the default."""

from streamlearn.daemon.kafka.pure.reader import PureReader
from streamlearn.daemon.kafka.pure.sink import PureSink

__all__ = ["PureReader", "PureSink"]
