"""Settings of kafka-python's clients."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.net.compat import KafkaNetClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from streamlearn.errors import SourceDeniedError
from streamlearn.kafka.failures import ConnectionErrors

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.kafka.connection import Connection
    from streamlearn.kafka.security import Tokens

# The first is short: a wrong password is reported immediately, and not retried for long.
ATTEMPTS = (2.5, 5.0)  # seconds
LIBRARY = logging.getLogger("kafka")


class TokenProvider(AbstractTokenProvider):
    """Provide the user's tokens to kafka-python."""

    def __init__(self, tokens: Tokens) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tokens = tokens

    def token(self) -> str:
        """Return a valid token."""
        return self._tokens.current()[0]


def common(connection: Connection) -> dict[str, Any]:
    """Return the settings that reader, writer and admin client share."""
    security = connection.security
    settings: dict[str, Any] = {
        "bootstrap_servers": list(connection.servers),
        "client_id": connection.client_id,
        "security_protocol": security.protocol,
        "ssl_cafile": security.cafile,
        "ssl_certfile": security.certfile,
        "ssl_keyfile": security.keyfile,
        # Reconnect to a restarted broker within a second, instead of 30.
        "reconnect_backoff_max_ms": 1000,
        "request_timeout_ms": 10_000,
        "metadata_max_age_ms": 30_000,
    }
    if security.mechanism is not None:
        settings["sasl_mechanism"] = security.mechanism
    if security.token_provider is not None:
        settings["sasl_oauth_token_provider"] = TokenProvider(security.tokens())
    elif security.mechanism is not None:
        settings["sasl_plain_username"] = security.username
        settings["sasl_plain_password"] = security.password
    return settings


def connect(
    client: Callable[..., Any],
    connection: Connection,
    network: Callable[..., Any] = KafkaNetClient,
    **settings: object,
) -> Any:
    """Create a client that is connected to the cluster; raise the reason if this fails."""
    login = connection.security.username or "the token"
    reasons = ConnectionErrors(login if connection.security.mechanism else None)
    # The library logs each attempt; a failure is reported once, by its error.
    quiet, LIBRARY.propagate = LIBRARY.propagate, False
    LIBRARY.addHandler(reasons)
    try:
        for seconds in ATTEMPTS:
            made_of: list[Any] = []  # a client that fails would leave its threads behind
            try:
                made = client(
                    **common(connection),
                    bootstrap_timeout_ms=int(seconds * 1000),
                    kafka_client=partial(_remember, made_of, network),
                    **settings,
                )
            except BaseException as failure:
                for one in made_of:
                    one.close()
                if not isinstance(failure, KafkaError):
                    raise
                error = reasons.error(connection.bootstrap)
                if not isinstance(failure, KafkaTimeoutError) or isinstance(
                    error, SourceDeniedError
                ):
                    raise error from failure
            else:
                never_create(made)
                return made
        raise error
    finally:
        LIBRARY.removeHandler(reasons)
        LIBRARY.propagate = quiet


def _remember(networks: list[Any], network: Callable[..., Any], **settings: object) -> Any:
    networks.append(network(**settings))
    return networks[-1]


def never_create(client: Any) -> None:
    """Prevent a client from creating topics by asking for them.

    kafka-python 3.0 does not pass the setting `allow_auto_create_topics` to the part that sends the
    requests. A test with a broker that creates topics checks this.
    """
    for part in ("_cluster", "_metadata"):  # of a consumer, of a producer; an admin never does
        cluster = getattr(client, part, None)
        if cluster is not None:
            cluster.config["allow_auto_create_topics"] = False
