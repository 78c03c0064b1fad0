"""Settings of confluent-kafka's clients."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException

from streamlearn.errors import SourceDeniedError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from streamlearn.kafka.connection import Connection
    from streamlearn.kafka.failures import ConnectionErrors

SECONDS = 10.0  # timeout of a request
FIRST_SECONDS = 7.5  # timeout of the first request
DENIED = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
UNKNOWN = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}
# The library logs every attempt to connect; a failure is reported once, by its error.
SILENT = logging.getLogger("streamlearn.kafka.confluent.library")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


def common(connection: Connection, reasons: ConnectionErrors) -> dict[str, Any]:
    """Return the settings that reader, writer and admin client share."""
    security = connection.security
    settings: dict[str, Any] = {
        "bootstrap.servers": ",".join(connection.servers),
        "client.id": connection.client_id,
        "security.protocol": security.protocol,
        "reconnect.backoff.max.ms": 1000,
        "allow.auto.create.topics": False,
        "topic.metadata.refresh.interval.ms": 30_000,
        "socket.keepalive.enable": True,
        "error_cb": lambda error: reasons.add(error.str()),
        "logger": SILENT,
    }
    optional = {
        "ssl.ca.location": security.cafile,
        "ssl.certificate.location": security.certfile,
        "ssl.key.location": security.keyfile,
        "sasl.mechanism": security.mechanism,
        "sasl.username": security.username,
        "sasl.password": security.password,
    }
    settings.update((name, value) for name, value in optional.items() if value is not None)
    if security.token_provider is not None:
        tokens = security.tokens()
        tokens.current()  # a provider that fails raises here, not in a thread of the library
        settings["oauth_cb"] = lambda _: tokens.current()
    return settings


def wait_for_cluster(admin: AdminClient, connection: Connection, reasons: ConnectionErrors) -> None:
    """Wait until a broker answers; raise the reason if none does."""
    deadline = time.monotonic() + FIRST_SECONDS
    while True:
        admin.poll(0)  # serves the callbacks for errors and tokens
        with suppress(KafkaException):  # only a timeout
            if admin.cluster_id(timeout=0.5) is not None:
                reasons.clear()
                return
        admin.poll(0)
        # Do not retry a wrong password.
        problem = reasons.error(connection.bootstrap)
        if isinstance(problem, SourceDeniedError) or time.monotonic() > deadline:
            raise problem
