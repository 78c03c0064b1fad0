"""Kafka over kafka-python, which is pure Python: the default."""

from streamlearn.kafka.kafka_python.reader import KafkaPythonReader
from streamlearn.kafka.kafka_python.sink import KafkaPythonSink

__all__ = ["KafkaPythonReader", "KafkaPythonSink"]
