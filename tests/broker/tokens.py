"""Tokens for a daemon of the tests, which a test may have end, or replace by ones that do not help.

A token is an unsigned one, such as a broker for tests accepts.
"""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path

from tests.broker.apache_kafka import USER

SECONDS = 3  # for which a token is valid
VARIABLE = "STREAMLEARN_TESTS_TOKENS"  # a file that says whether tokens are "good", "bad" or "none"


def unsigned(seconds: int) -> tuple[str, float]:
    """Return a token, and when it ends."""
    now = int(time.time())
    parts = [{"alg": "none"}, {"sub": USER, "iat": now, "exp": now + seconds}]
    coded = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts]
    return f"{'.'.join(coded)}.", float(now + seconds)


def provided() -> tuple[str, float]:
    """Return what the test wants to be given."""
    kind = Path(os.environ[VARIABLE]).read_text(encoding="utf-8")
    if kind == "none":
        raise OSError("the identity provider is away")
    token, end = unsigned(SECONDS)
    return (token if kind == "good" else "refused"), end
