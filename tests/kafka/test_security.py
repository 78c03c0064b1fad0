"""What a connection needs to authenticate, tokens, and why no broker answers; without a broker."""

from __future__ import annotations

import itertools
import time

import pytest

from streamlearn.errors import SourceDeniedError, SourceUnreachableError
from streamlearn.kafka.failures import FAILURE_KINDS, ConnectionErrors
from streamlearn.kafka.security import LIFETIME, MECHANISMS, Security, Tokens

NOW = 1_700_000_000.0
GIVEN: list[object] = []  # what the token provider returns, the last one for good


def provider() -> object:
    """Return the next of the tokens."""
    given = GIVEN.pop(0) if len(GIVEN) > 1 else GIVEN[0]
    if isinstance(given, Exception):
        raise given
    return given


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a clock to set."""
    now = [NOW]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def tokens(*given: object) -> Tokens:
    """Return the tokens of a provider that returns these."""
    GIVEN[:] = given
    return Security(mechanism="OAUTHBEARER", token_provider=f"{__name__}:provider").tokens()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_each_mechanism_needs_its_login(mechanism: str) -> None:
    logins = {"username": "ann", "password": "secret"}, {"token_provider": "module:callable"}
    for login in ({}, *logins, {"username": "ann"}, {"password": "secret"}):
        if login == logins[mechanism == "OAUTHBEARER"]:
            assert Security(mechanism=mechanism, **login).protocol == "SASL_SSL"
        else:
            with pytest.raises(ValueError, match=f"{mechanism} needs"):
                Security(mechanism=mechanism, **login)


@pytest.mark.parametrize("lifetime", [None, 10.0, 1000.0])
def test_a_token_is_reused_for_four_fifths_of_its_lifetime(
    clock: list[float], lifetime: float | None
) -> None:
    seconds = LIFETIME if lifetime is None else lifetime
    first, second = (
        name if lifetime is None else (name, NOW + (k + 1) * seconds)
        for k, name in enumerate(("first", "second"))
    )
    found = tokens(first, second)
    assert found.current() == ("first", NOW + seconds)
    clock[0] = NOW + 0.79 * seconds
    assert found.current()[0] == "first"
    clock[0] = NOW + 0.81 * seconds
    assert found.current()[0] == "second"


@pytest.mark.parametrize("given", [None, "", ("", NOW + 9.0), ("a", NOW), ("a", NOW - 1.0)])
def test_no_token_or_an_expired_one_is_refused(clock: list[float], given: object) -> None:
    found = tokens(given, "good")
    with pytest.raises(SourceDeniedError, match=r"provider returned no valid token"):
        found.current()
    assert found.current() == ("good", clock[0] + LIFETIME)


def test_a_provider_that_fails_is_the_reason() -> None:
    with pytest.raises(SourceDeniedError, match="provider failed: OSError: away"):
        tokens(OSError("away")).current()


EXAMPLES = (
    "token_provider a:b failed",
    "unsupported SASL mechanism",
    "Authentication failed",
    "certificate verify failed",
    "bad certificate",
    "SSL handshake failed",
    "Failed to resolve 'a'",
    "Connection refused",
    "Network is unreachable",
    "Disconnected",
)


def test_the_most_specific_message_is_the_reason() -> None:
    assert len(EXAMPLES) == len(FAILURE_KINDS)
    for lines in itertools.permutations(range(len(EXAMPLES)), 2):
        reasons = ConnectionErrors()
        reasons.add("2/2 brokers are down")
        for k in lines:
            reasons.add(EXAMPLES[k])
        kind = FAILURE_KINDS[min(lines)]
        assert reasons.most_specific() == (EXAMPLES[min(lines)], kind)
        assert type(reasons.error("a:1")) is kind.error
        assert kind.remedy in str(reasons.error("a:1"))
        assert reasons.known() == EXAMPLES[min(lines)]
        assert f"why: {EXAMPLES[min(lines)]}" in str(reasons.unanswered("a:1", "why"))
        reasons.clear()
        assert reasons.known() is None


def test_a_reason_of_no_kind_is_shown_as_it_is() -> None:
    reasons = ConnectionErrors()
    assert type(reasons.error("a:1")) is SourceUnreachableError
    assert str(reasons.unanswered("a:1", "why")).startswith("kafka at a:1: why; ")
    reasons.add("one")
    reasons.add("two")
    assert reasons.known() == "two"
