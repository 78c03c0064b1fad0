"""The loss of what was served, and its confidence interval."""

import math

import numpy as np
import pytest

from streamlearn.daemon.served_loss import MAX_ARMS, ArmLoss, ServedLosses
from streamlearn.stream.impressions import BUCKETS

USERS = 3000


def simulated(rng: np.random.Generator, mean: float) -> ArmLoss:
    """Return the losses of users, whose events resemble each other."""
    loss = ArmLoss()
    own = rng.normal(mean, 0.3, size=USERS)
    events = rng.integers(1, 20, size=USERS)
    users = np.repeat(np.arange(USERS), events)
    buckets = rng.integers(0, BUCKETS, size=USERS)[users]
    loss.add(buckets, own[users] + rng.normal(0.0, 0.1, size=len(users)), np.ones(len(users)))
    return loss


def test_intervals_contain_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    single = difference = naive = 0
    for _ in range(400):
        a, b = simulated(rng, 0.5), simulated(rng, 0.45)
        found = a.interval()
        single += found.low <= 0.5 <= found.high
        gap = a.difference(b)
        difference += gap.low <= 0.05 <= gap.high
        error = 1.96 * 0.32 / np.sqrt(a.events)  # as if events were independent
        naive += abs(a.mean - 0.5) < error
    assert 0.92 <= single / 400 <= 0.98
    assert 0.92 <= difference / 400 <= 0.98
    assert naive / 400 < 0.7


def test_difference_of_the_same_users() -> None:
    """Users of both sides make a difference more certain, not less."""
    rng = np.random.default_rng(0)
    a, b = ArmLoss(), ArmLoss()
    buckets = rng.integers(0, BUCKETS, size=20_000)
    losses = rng.normal(size=20_000)
    a.add(buckets, losses, np.ones(20_000))
    b.add(buckets, losses + 0.01, np.ones(20_000))
    gap = b.difference(a)
    assert gap.mean == pytest.approx(0.01)
    assert gap.high - gap.low < 1e-6 < a.interval().high - a.interval().low


def test_rows_and_state() -> None:
    losses = ServedLosses()
    assert [losses.number_of("x", "a"), losses.number_of("y", "b"), losses.number_of("x", "a")] == [
        0, 1, 0,
    ]  # fmt: skip
    losses.arms["x", "a"].add(np.array([1, 2, 2]), np.array([0.1, 0.2, 0.3]), np.ones(3))
    losses.arms["y", "b"].add(np.array([5, 6]), np.array([0.5, 0.7]), np.array([1.0, 3.0]))
    again = ServedLosses()
    again.restore(losses.state())
    rows = list(again.rows())
    assert rows == list(losses.rows())
    assert [(one["learner"], one["arm"], one["events"]) for one in rows] == [
        ("x", "a", 3), ("y", "b", 2),
    ]  # fmt: skip
    assert rows[1]["loss"] == pytest.approx(0.65)
    assert rows[0]["difference"] is None
    assert rows[1]["difference"] == pytest.approx(0.45)


def test_fewer_than_two_users_have_no_interval() -> None:
    one, two = ArmLoss(), ArmLoss()
    one.add(np.array([7, 7, 7]), np.array([0.1, 0.2, 0.3]), np.ones(3))
    assert one.interval().mean == pytest.approx(0.2)
    assert one.interval()[1:] == (-math.inf, math.inf)
    assert one.difference(one)[1:] == (-math.inf, math.inf)
    two.add(np.array([8]), np.array([0.2]), np.ones(1))
    # of two users there is one, from one each
    low, high = one.difference(two)[1:]
    assert math.isfinite(low)
    assert math.isfinite(high)
    assert ArmLoss().interval()[1:] == (-math.inf, math.inf)
    assert math.isnan(ArmLoss().mean)


def test_only_so_many_arms_are_measured() -> None:
    losses = ServedLosses()
    numbers = [losses.number_of("a", str(k)) for k in range(MAX_ARMS + 2)]
    assert numbers == [*range(MAX_ARMS), -1, -1]
    assert losses.number_of("a", "5") == 5
    assert losses.number_of("b", "5") == -1


def test_each_arm_is_compared_with_the_one_of_the_most_events() -> None:
    losses = ServedLosses()
    users = np.arange(4)
    assert list(losses.rows()) == []
    losses.number_of("silent", "x")
    losses.arms["a", "x"], losses.arms["b", "y"] = ArmLoss(), ArmLoss()
    losses.arms["a", "x"].add(users, np.full(4, 0.5), np.ones(4))
    [alone] = losses.rows()
    assert "difference" not in alone
    losses.arms["b", "y"].add(np.tile(users, 2), np.full(8, 0.2), np.ones(8))
    first, second = losses.rows()
    assert (first["learner"], first["events"], second["events"]) == ("a", 4, 8)
    assert first["difference"] == pytest.approx(0.3)
    assert second["difference"] is None
