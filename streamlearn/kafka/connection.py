"""How to connect to a cluster: addresses, client library, login."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from streamlearn.errors import SinkDeniedError, SourceDeniedError
from streamlearn.kafka.security import Security

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamlearn.kafka.reader import KafkaReader
    from streamlearn.kafka.sink import KafkaSink
    from streamlearn.kafka.transactions import Fencing

Client = Literal["kafka-python", "confluent"]


@dataclass(frozen=True, kw_only=True)
class Connection:
    """How to reach a cluster.

    >>> Connection(bootstrap="a:9092, b:9092").servers
    ('a:9092', 'b:9092')
    >>> Connection(bootstrap="localhost")
    Traceback (most recent call last):
    ...
    ValueError: bootstrap 'localhost': expected host:port of brokers, separated by commas
    """

    bootstrap: str
    client: Client = "kafka-python"
    security: Security = field(default_factory=Security)
    client_id: str = "streamlearn"

    def __post_init__(self) -> None:
        if not self.servers or not all(re.fullmatch(r".+:\d{1,5}", s) for s in self.servers):
            raise ValueError(
                f"bootstrap {self.bootstrap!r}: expected host:port of brokers, separated by commas"
            )
        if self.client not in {"kafka-python", "confluent"}:
            raise ValueError(f"client {self.client!r}: expected kafka-python or confluent")

    @property
    def servers(self) -> tuple[str, ...]:
        """The addresses of `bootstrap`, one by one."""
        return tuple(part.strip() for part in self.bootstrap.split(",") if part.strip())

    def denied(self, topics: Iterable[object], right: str) -> SourceDeniedError:
        """Return the error for a missing right on topics."""
        names = ", ".join(map(str, topics))
        who = f"user {self.security.username}" if self.security.username else "this client"
        return SourceDeniedError(
            f"kafka at {self.bootstrap}: not authorized for topic {names}; grant {who} the rights "
            f"{right} and DESCRIBE"
        )

    def reader(self, *, isolation: str, fetch_bytes: int, group: str | None) -> KafkaReader:
        """Connect for reading."""
        if self.client == "confluent":
            _check_confluent()
            from streamlearn.kafka.confluent import ConfluentReader  # noqa: PLC0415 -- an extra

            return ConfluentReader(self, isolation=isolation, fetch_bytes=fetch_bytes, group=group)
        from streamlearn.kafka.kafka_python import KafkaPythonReader  # noqa: PLC0415 -- takes 0.2 s

        return KafkaPythonReader(self, isolation=isolation, fetch_bytes=fetch_bytes, group=group)

    def denied_transactions(self, name: str) -> SinkDeniedError:
        """Return the error for a missing right on a transactional id."""
        who = f"user {self.security.username}" if self.security.username else "this client"
        return SinkDeniedError(
            f"kafka at {self.bootstrap}: not authorized for transactional id {name}; grant {who} "
            f"the rights WRITE and DESCRIBE for transactional ids with the prefix "
            f"'{self.client_id}-', or set checkpoint.transactions = false"
        )

    def sink(
        self, topic: str, *, buffer_bytes: int = 32 << 20, fencing: Fencing | None = None
    ) -> KafkaSink:
        """Connect for writing to a topic; `SinkError` if it does not exist or is not writable.

        With `fencing`, records are sent in transactions, after `take_over`.
        """
        if self.client == "confluent":
            _check_confluent()
            from streamlearn.kafka.confluent import ConfluentSink  # noqa: PLC0415 -- an extra

            return ConfluentSink(self, topic, buffer_bytes=buffer_bytes, fencing=fencing)
        from streamlearn.kafka.kafka_python import KafkaPythonSink  # noqa: PLC0415 -- takes 0.2 s

        return KafkaPythonSink(self, topic, buffer_bytes=buffer_bytes, fencing=fencing)


def _check_confluent() -> None:
    try:
        import confluent_kafka  # noqa: F401, PLC0415
    except ImportError as error:
        raise ValueError(
            "client = 'confluent' needs confluent-kafka: pip install 'streamlearn[fast]', or use "
            "client = 'kafka-python'"
        ) from error
