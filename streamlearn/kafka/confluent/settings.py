"""How confluent-kafka is told where the brokers are and who we are."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException

from streamlearn.errors import SourceDenied

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from streamlearn.kafka.connection import Connection
    from streamlearn.kafka.reasons import Reasons

SECONDS = 10.0  # for an answer of the broker's
FIRST_SECONDS = 7.5  # for the first one
DENIED = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
UNKNOWN = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}
# The library logs every attempt to connect; the reason of a failure is told once, in its error.
SILENT = logging.getLogger("streamlearn.kafka.confluent.library")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


def common(connection: Connection, reasons: Reasons) -> dict[str, Any]:
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
        tokens.current()  # a provider that fails is said here, not in a thread of the library's
        settings["oauth_cb"] = lambda _: tokens.current()
    return settings


def wait_for_cluster(admin: AdminClient, connection: Connection, reasons: Reasons) -> None:
    """Wait until a broker answers; else raise the reason why none does."""
    deadline = time.monotonic() + FIRST_SECONDS
    while True:
        admin.poll(0)  # serves the callbacks: errors, and tokens that are wanted
        with suppress(KafkaException):  # says only that time is up
            if admin.cluster_id(timeout=0.5) is not None:
                reasons.clear()
                return
        admin.poll(0)
        # A wrong password will not become right: it is not to be tried for long.
        problem = reasons.error(connection.bootstrap)
        if isinstance(problem, SourceDenied) or time.monotonic() > deadline:
            raise problem
