"""Authentication and encryption: passwords, tokens, TLS."""

from __future__ import annotations

import importlib
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from streamlearn.errors import SourceDeniedError

if TYPE_CHECKING:
    from collections.abc import Callable

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
LIFETIME = 300.0  # seconds that a token is valid if its provider does not give its expiry


@dataclass(frozen=True, kw_only=True)
class Security:
    """How to authenticate and encrypt.

    Parameters
    ----------
    protocol
        PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. The default is SASL_SSL with a mechanism,
        SSL with a file, else PLAINTEXT.
    mechanism
        PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.
    cafile, certfile, keyfile
        PEM files: the trusted authorities (by default the system's), and the client certificate
        with its key.
    token_provider
        `"module:callable"`; the callable returns a token, or a token and its expiry in seconds
        since 1970. It is called again before that, by default after 4 minutes.

    >>> Security(mechanism="SCRAM-SHA-512", username="ann", password="secret").protocol
    'SASL_SSL'
    >>> Security(mechanism="scram", username="ann", password="secret")
    Traceback (most recent call last):
    ...
    ValueError: mechanism 'scram': expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER
    """

    protocol: str = ""
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    cafile: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    token_provider: str | None = None

    def __post_init__(self) -> None:
        if not self.protocol:
            files = self.cafile or self.certfile
            guess = "SASL_SSL" if self.mechanism else "SSL" if files else "PLAINTEXT"
            object.__setattr__(self, "protocol", guess)
        self._check_names()
        self._check_login()
        self._check_files()

    def _check_names(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"protocol {self.protocol!r}: expected one of {', '.join(PROTOCOLS)}")
        if self.mechanism is not None and self.mechanism not in MECHANISMS:
            raise ValueError(
                f"mechanism {self.mechanism!r}: expected one of {', '.join(MECHANISMS)}"
            )
        if self.protocol.startswith("SASL") != (self.mechanism is not None):
            remedy = (
                "set a mechanism" if self.mechanism is None else "use SASL_SSL or SASL_PLAINTEXT"
            )
            raise ValueError(
                f"protocol {self.protocol} with mechanism {self.mechanism or 'none'}: {remedy}"
            )

    def _check_login(self) -> None:
        if self.mechanism == "OAUTHBEARER":
            if self.token_provider is None:
                raise ValueError("OAUTHBEARER needs token_provider = 'module:callable'")
        elif self.mechanism is not None and (not self.username or self.password is None):
            raise ValueError(f"{self.mechanism} needs a username and a password")

    def _check_files(self) -> None:
        if self.keyfile and not self.certfile:
            raise ValueError(
                "keyfile without certfile: set certfile to the certificate of this key"
            )
        for name in ("cafile", "certfile", "keyfile"):
            path = getattr(self, name)
            if path is not None and self.protocol not in {"SSL", "SASL_SSL"}:
                raise ValueError(
                    f"{name} needs TLS, but protocol is {self.protocol}: use SSL or SASL_SSL"
                )
            if path is not None and not Path(path).is_file():
                raise ValueError(f"{name}: {path} is not a file")

    def tokens(self) -> Tokens:
        """Return the tokens of `token_provider`."""
        return Tokens(str(self.token_provider))


class Tokens:
    """Tokens of a user's function, each reused for four fifths of its lifetime."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._provide = _import(path)
        self._lock = threading.Lock()  # clients call from their own threads
        self._token = ""
        self._end = self._renew = 0.0

    def current(self) -> tuple[str, float]:
        """Return the token and its expiry in seconds since 1970."""
        with self._lock:
            now = time.time()
            if now >= self._renew:
                self._token, self._end = self._ask(now)
                self._renew = now + 0.8 * (self._end - now)
            return self._token, self._end

    def _ask(self, now: float) -> tuple[str, float]:
        try:
            given = self._provide()
        except Exception as error:
            raise SourceDeniedError(
                f"token_provider {self.path} failed: {type(error).__name__}: {error}"
            ) from error
        token, end = given if isinstance(given, tuple) else (str(given or ""), now + LIFETIME)
        if not token or not end > now:
            raise SourceDeniedError(
                f"token_provider {self.path} returned no valid token: return a string, or a string "
                "and its expiry in seconds since 1970"
            )
        return token, float(end)


def _import(path: str) -> Callable[[], str | tuple[str, float]]:
    module, _, name = path.partition(":")
    try:
        provide = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"token_provider {path!r} is not 'module:callable': {error}") from error
    if not callable(provide):
        raise ValueError(f"token_provider {path!r} is not callable")
    function: Callable[[], str | tuple[str, float]] = provide
    return function
