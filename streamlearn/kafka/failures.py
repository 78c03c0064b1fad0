"""Find out from a client library why no broker answers.

A library that cannot connect keeps trying, and its final error is only a timeout. What the broker
or the network answered is in its log, where the most specific message is the reason: a broker that
has refused a password just disconnects on the next attempts.
"""

from __future__ import annotations

import logging
import re
import threading
from typing import NamedTuple

from streamlearn.errors import SourceDeniedError, SourceError, SourceUnreachableError


class FailureKind(NamedTuple):
    """A kind of failure: how to recognize it, and its remedy."""

    pattern: re.Pattern[str]
    error: type[SourceError]
    remedy: str


def _failure_kind(pattern: str, error: type[SourceError], remedy: str) -> FailureKind:
    return FailureKind(re.compile(pattern, re.IGNORECASE), error, remedy)


# The most specific first.
FAILURE_KINDS = (
    _failure_kind("token_provider", SourceDeniedError, "fix the function"),
    _failure_kind(
        "mechanism handshake|unsupported.*mechanism", SourceDeniedError, "use another mechanism"
    ),
    _failure_kind(
        "authenticat|credential|sasl|principal|token",
        SourceDeniedError,
        "check security.mechanism, username and password (or token_provider)",
    ),
    _failure_kind(
        "verify failed|self.signed|hostname mismatch|doesn't match",
        SourceDeniedError,
        "set security.cafile to the authority that signed the broker's certificate, and use a "
        "host name that is in the certificate",
    ),
    _failure_kind(
        "bad certificate|certificate required|certificate unknown|alert",
        SourceDeniedError,
        "the broker requires a client certificate: set security.certfile and security.keyfile",
    ),
    _failure_kind(
        "ssl|tls|handshake",
        SourceDeniedError,
        "check security.protocol and whether this port uses TLS",
    ),
    _failure_kind("resol|not known|getaddrinfo", SourceUnreachableError, "check the host name"),
    _failure_kind("refused", SourceUnreachableError, "check that the broker is running"),
    _failure_kind(
        "unreachable|no route|timed? ?out",
        SourceUnreachableError,
        "check the address and the network",
    ),
    _failure_kind(
        "frame length|response size|disconnect|closed|reset",
        SourceUnreachableError,
        "check the port and security.protocol: the answer is not of this protocol",
    ),
)

NOTHING = re.compile("brokers are down$|Unable to bootstrap")  # messages without a reason


class ConnectionErrors(logging.Handler):
    """Collects connection errors from a log or from a client's callbacks."""

    def __init__(self, login: str | None = None) -> None:
        super().__init__(logging.WARNING)
        self._login = login
        self._lines: list[str] = []
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Collect the exceptions among the arguments of a log record."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        for argument in arguments:
            if isinstance(argument, BaseException):
                self.add(str(argument))
        # kafka-python often misses the broker's answer to a failed login before it disconnects. But
        # if the broker has sent its version, it speaks Kafka, and only the login can have failed.
        spoke = any(getattr(argument, "broker_version", None) for argument in arguments)
        if self._login and spoke and "disconnected" in record.getMessage():
            self.add(
                f"authentication failed: the broker disconnected on the login of {self._login}"
            )

    def add(self, text: str) -> None:
        """Add a message."""
        with self._guard:
            if len(self._lines) < 1000:
                self._lines.append(text)

    def clear(self) -> None:
        """Remove all messages."""
        with self._guard:
            self._lines.clear()

    def most_specific(self) -> tuple[str, FailureKind | None]:
        """Return the most specific message and its kind."""
        with self._guard:
            lines = [_shortened(line) for line in self._lines if not NOTHING.search(line)]
        for kind in FAILURE_KINDS:
            for line in lines:
                if kind.pattern.search(line):
                    return line, kind
        return (lines[-1] if lines else "no answer"), None

    def known(self) -> str | None:
        """Return the most specific message, None if there is none."""
        with self._guard:
            silent = not self._lines
        return None if silent else self.most_specific()[0]

    def unanswered(self, bootstrap: str, why: str) -> SourceUnreachableError:
        """Return the error for a request that the cluster did not answer."""
        return unanswered(bootstrap, why if (known := self.known()) is None else f"{why}: {known}")

    def error(self, bootstrap: str) -> SourceError:
        """Return the error with the reason and its remedy."""
        line, kind = self.most_specific()
        if kind is None:
            return SourceUnreachableError(
                f"kafka at {bootstrap}: {line}; check the address, the port and security.protocol"
            )
        return kind.error(f"kafka at {bootstrap}: {line}; {kind.remedy}")


def unanswered(bootstrap: str, why: str) -> SourceUnreachableError:
    """Return the error for a request that the cluster did not answer, given the reason.

    >>> print(unanswered("a:1", "Failed to get metadata: Authentication failed"))
    ... # doctest: +NORMALIZE_WHITESPACE
    kafka at a:1: Failed to get metadata: Authentication failed; check security.mechanism, username
    and password (or token_provider)
    """
    kind = next((kind for kind in FAILURE_KINDS if kind.pattern.search(why)), None)
    remedy = (
        "check advertised.listeners: brokers answer there, but not at the advertised addresses, or "
        "not in time"
        if kind is None or kind.error is SourceUnreachableError
        else kind.remedy
    )
    return SourceUnreachableError(f"kafka at {bootstrap}: {why}; {remedy}")


def _shortened(line: str) -> str:
    """Remove the connection, the duration, and a repeated exception name from a message.

    >>> _shortened("ssl://b:1/bootstrap: Connect to #b:1 failed: Connection refused (after 0ms)")
    'Connect to #b:1 failed: Connection refused'
    >>> _shortened("[Error 58] SaslError: SaslError: wrong password")
    'SaslError: wrong password'
    """
    line = re.sub(r"^\S+/\S+: ", "", line)
    line = re.sub(r" \((after \d+ms|_ssl\.c).*$", "", line)
    line = re.sub(r"^\[Error \d+\] ", "", line)
    return re.sub(r"^(\w+: )\1", r"\1", line)
