"""Why no broker answers: the one true reason, out of the many words of a client library.

A library that can't connect goes on trying, and says at its deadline only that it has passed; what
the broker or the network said is in its log. The most telling of these is the reason: a broker
that has refused a password merely hangs up on the next attempts.
"""

from __future__ import annotations

import logging
import re
import threading
from typing import NamedTuple

from streamlearn.errors import SourceDenied, SourceError, SourceUnreachable


class Kind(NamedTuple):
    """A kind of failure: how it is recognized, and what to do about it."""

    pattern: re.Pattern[str]
    error: type[SourceError]
    remedy: str


def _kind(pattern: str, error: type[SourceError], remedy: str) -> Kind:
    return Kind(re.compile(pattern, re.IGNORECASE), error, remedy)


# The most telling first.
KINDS = (
    _kind("token_provider", SourceDenied, "repair the function"),
    _kind("mechanism handshake|unsupported.*mechanism", SourceDenied, "use another mechanism"),
    _kind(
        "authenticat|credential|sasl|principal|token",
        SourceDenied,
        "check security.mechanism, username and password (or token_provider)",
    ),
    _kind(
        "verify failed|self.signed|hostname mismatch|doesn't match",
        SourceDenied,
        "give the authority that signed the broker's certificate as security.cafile, and "
        "address the broker by a name that is in it",
    ),
    _kind(
        "bad certificate|certificate required|certificate unknown|alert",
        SourceDenied,
        "the broker wants a certificate: security.certfile and keyfile",
    ),
    _kind(
        "ssl|tls|handshake",
        SourceDenied,
        "is this port one for TLS? check security.protocol and the port",
    ),
    _kind("resol|not known|getaddrinfo", SourceUnreachable, "check the host's name"),
    _kind("refused", SourceUnreachable, "nothing listens there: is the broker started?"),
    _kind("unreachable|no route|timed? ?out", SourceUnreachable, "check address and network"),
    _kind(
        "frame length|response size|disconnect|closed|reset",
        SourceUnreachable,
        "what answers does not speak Kafka in this way: check the port and security.protocol",
    ),
)

NOTHING = re.compile("brokers are down$|Unable to bootstrap")  # says only that there is a reason


class Reasons(logging.Handler):
    """Collects what went wrong with connections, from a log or from a client's callbacks."""

    def __init__(self, login: str | None = None) -> None:
        super().__init__(logging.WARNING)
        self._login = login
        self._lines: list[str] = []
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Take the exceptions that a log record was made of."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        for argument in arguments:
            if isinstance(argument, BaseException):
                self.add(str(argument))
        # kafka-python often misses what a broker says before it hangs up on a failed login. But one
        # that has told its version does speak Kafka, and the login is all that is left.
        spoke = any(getattr(argument, "broker_version", None) for argument in arguments)
        if self._login and spoke and "disconnected" in record.getMessage():
            self.add(f"authentication failed: the broker hung up on the login of {self._login}")

    def add(self, text: str) -> None:
        """Take one reason."""
        with self._guard:
            if len(self._lines) < 1000:
                self._lines.append(text)

    def clear(self) -> None:
        """Forget them."""
        with self._guard:
            self._lines.clear()

    def worst(self) -> tuple[str, Kind | None]:
        """Return the most telling line and what kind it is."""
        with self._guard:
            lines = [_tidy(line) for line in self._lines if not NOTHING.search(line)]
        for kind in KINDS:
            for line in lines:
                if kind.pattern.search(line):
                    return line, kind
        return (lines[-1] if lines else "no answer that Kafka would give"), None

    def known(self) -> str | None:
        """Return the most telling line; None if there is none."""
        with self._guard:
            silent = not self._lines
        return None if silent else self.worst()[0]

    def unanswered(self, bootstrap: str, why: str) -> SourceUnreachable:
        """Return the exception for a request that a cluster did not answer."""
        return unanswered(bootstrap, why if (known := self.known()) is None else f"{why}: {known}")

    def error(self, bootstrap: str) -> SourceError:
        """Return the exception that says why."""
        line, kind = self.worst()
        if kind is None:
            return SourceUnreachable(
                f"kafka at {bootstrap}: {line}: check the address, the port and security.protocol"
            )
        return kind.error(f"kafka at {bootstrap}: {line}: {kind.remedy}")


def unanswered(bootstrap: str, why: str) -> SourceUnreachable:
    """Return the exception for a request that a cluster did not answer, by what it said.

    >>> print(unanswered("a:1", "Failed to get metadata: Authentication failed"))
    ... # doctest: +NORMALIZE_WHITESPACE
    kafka at a:1: Failed to get metadata: Authentication failed: check security.mechanism, username
    and password (or token_provider)
    """
    kind = next((kind for kind in KINDS if kind.pattern.search(why)), None)
    remedy = (
        "brokers answer there, but not at the addresses that they advertise, or not in time: check "
        "advertised.listeners"
        if kind is None or kind.error is SourceUnreachable
        else kind.remedy
    )
    return SourceUnreachable(f"kafka at {bootstrap}: {why}: {remedy}")


def _tidy(line: str) -> str:
    """Leave out which connection, how long it took, and an exception's name said twice.

    >>> _tidy("ssl://b:1/bootstrap: Connect to #b:1 failed: Connection refused (after 0ms)")
    'Connect to #b:1 failed: Connection refused'
    >>> _tidy("[Error 58] SaslError: SaslError: wrong password")
    'SaslError: wrong password'
    """
    line = re.sub(r"^\S+/\S+: ", "", line)
    line = re.sub(r" \((after \d+ms|_ssl\.c).*$", "", line)
    line = re.sub(r"^\[Error \d+\] ", "", line)
    return re.sub(r"^(\w+: )\1", r"\1", line)
