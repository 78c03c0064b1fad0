"""Kafka as a source of records and a sink for predictions and dead letters.

Two client libraries implement the same interfaces (`reader`, `sink`): kafka-python, the default,
and confluent-kafka. Everything that decides what is read is above these interfaces.
"""

from streamlearn.kafka.connection import Connection
from streamlearn.kafka.security import Security
from streamlearn.kafka.sink import KafkaSink
from streamlearn.kafka.source import KafkaSource
from streamlearn.kafka.transactions import Fencing

__all__ = ["Connection", "Fencing", "KafkaSink", "KafkaSource", "Security"]
