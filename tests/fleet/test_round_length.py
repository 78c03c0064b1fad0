"""Rounds: short while little is known, never longer than allowed, never shorter than worth it."""

from __future__ import annotations

import pytest

from streamlearn.fleet.round_length import FIRST, LEAST, SHARE, WORTH, RoundLength


def test_each_round_adds_a_share_of_what_is_known_until_they_are_as_long_as_allowed() -> None:
    length, learned, rate, added = RoundLength(10.0), 1_000_000, 100_000, []
    while length.seconds < 10.0:
        events = int(rate * length.seconds)
        learned += events
        added.append(length.after(learned=learned, events=events, between=0.0) * rate / learned)
        assert len(added) < 1000
    assert added[:-1] == pytest.approx([SHARE] * (len(added) - 1), rel=1e-3)
    assert len(added) > 5


def test_merges_take_a_small_share_of_the_time() -> None:
    length = RoundLength(10.0)
    assert length.after(learned=10, events=1000, between=0.3) == WORTH * 0.3
    assert length.after(learned=10, events=1000, between=100.0) == 10.0
    assert length.after(learned=10, events=1000, between=0.0) == LEAST


@pytest.mark.parametrize("most", [0.1, 0.5, 60.0])
def test_no_round_is_longer_than_allowed(most: float) -> None:
    length = RoundLength(most)
    assert length.seconds == min(most, FIRST)
    for events, between in ((0, 0.0), (1, 0.0), (1_000_000, 0.0), (1_000_000, 50.0), (0, 50.0)):
        assert length.after(learned=1_000_000, events=events, between=between) <= most
    assert length.after(learned=1_000_000, events=0, between=0.0) == most  # nothing to wait for
