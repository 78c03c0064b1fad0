"""The sample of events: uniform, exact, within its memory, and the same in plain Python."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.regret.progressive_sums import ProgressiveSums
from streamlearn.regret.reservoir import Reservoir, gather_rows, keys_of

L = sl.losses
KINDS = ("ones", "bytes", "singles", "doubles", "mixed")


def observed(reservoir: Reservoir, rows: int, first: int = 0, sums: Any = None) -> Any:
    """Observe rows whose label, slots and values are the number of the row."""
    sums = sums or ProgressiveSums(L.Squared(), reservoir)
    starts = np.arange(rows + 1) * 2
    numbers = np.arange(first, first + rows)
    slots = np.column_stack([numbers, numbers + 1]).ravel()
    values = np.column_stack([numbers + 0.1, -numbers]).ravel()
    sums.observe(starts, slots, values, numbers, None, np.zeros(rows))
    return sums


def mixed64(z: int) -> int:
    """Mix as SplitMix64 does."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def members(reservoir: Reservoir, rows: int) -> list[int]:
    """Return the positions whose keys are within the threshold, in plain Python."""
    start = reservoir.seed
    keys = (mixed64((start + t * 0x9E3779B97F4A7C15) % 2**64) for t in range(rows))
    return [t for t, key in enumerate(keys) if key <= reservoir.threshold]


def test_members_are_those_with_the_smallest_keys() -> None:
    reservoir = Reservoir(20_000, 3)
    observed(reservoir, 5000)
    found = gather_rows(reservoir.snapshot())
    expected = members(reservoir, 5000)
    np.testing.assert_array_equal(found["positions"], expected)
    np.testing.assert_array_equal(found["labels"][:, 0], expected)
    assert 100 < len(expected) < 500


@pytest.mark.parametrize("memory", [10_000, 30_000, 300_000])
def test_the_memory_is_used_and_not_exceeded(memory: int) -> None:
    reservoir = Reservoir(memory, 0)
    sums = ProgressiveSums(L.Squared(), reservoir)
    for first in range(0, 40_000, 1000):
        observed(reservoir, 1000, first, sums)
        assert reservoir.bytes <= 1.1 * memory
    rows = gather_rows(reservoir.snapshot())
    assert 0.6 * memory < 62 * len(rows["weights"]) < 1.1 * memory


def test_the_sample_is_uniform() -> None:
    rows, times = 600, 300
    counts, halves = np.zeros(rows), np.zeros(rows)
    for seed in range(times):
        reservoir = Reservoir(10_000, seed)
        observed(reservoir, rows)
        found = gather_rows(reservoir.snapshot(), 2)
        counts[found["positions"]] += 1
        halves[found["positions"][: found["ends"][0]]] += 1
    for seen in (counts, 2.0 * halves):
        share = counts.mean() / times
        deviation = math.sqrt(times * share * (1.0 - share)) * (1.0 if seen is counts else 2.0)
        assert np.abs(seen - times * share).max() < 4.5 * deviation
    blocks = counts.reshape(6, -1).mean(axis=1)  # no part of the stream is preferred
    assert np.abs(blocks / blocks.mean() - 1.0).max() < 0.1


@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_exact(kind: str, offset: int, levels: int) -> None:
    draw = np.random.default_rng(KINDS.index(kind))
    width = 1 + KINDS.index(kind) % 2
    loss = L.Squared() if width == 1 else L.MultiSquared()
    reservoir = Reservoir(60_000, 5, width)
    sums = ProgressiveSums(loss, reservoir)
    rows: list[tuple[Any, Any, Any, float]] = []
    for turn in range(30):
        lengths = draw.integers(0, 1 + 2 * turn, 50)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        n = int(starts[-1])
        slots = draw.integers(0, 70_000 if turn % 2 else 9, n)
        values = {
            "ones": np.ones(n),
            "bytes": draw.integers(1, 256, n).astype(float),
            "singles": draw.normal(size=n).astype(np.float32).astype(float),
            "doubles": draw.normal(size=n),
            "mixed": np.where(draw.random(n) < 0.5, 1.0, draw.normal(size=n)),
        }[kind]
        labels = draw.choice([1.0, -1.0, 0.3], (50, width))
        weights = draw.choice([1.0, 2.5], 50)
        sums.observe(starts, slots, values, labels, weights, np.zeros((50, width)))
        for a, b, y, w in zip(starts, starts[1:], labels, weights, strict=False):
            rows.append((slots[a:b], values[a:b], y, w))
        if turn == 9:
            reservoir.swap_classes()
            rows = [(slots, values, -y, w) for slots, values, y, w in rows]
        if turn == 19:
            state, reservoir = reservoir.state(), Reservoir(60_000, 0, width)
            reservoir.restore(state)
            held, sums = sums.state(), ProgressiveSums(loss, reservoir)
            sums.restore(held)
    found = gather_rows(reservoir.snapshot(), levels, offset)
    assert len(found["positions"])
    assert found["ends"][-1] == len(found["positions"])
    for k, position in enumerate(found["positions"].tolist()):
        slots, values, y, w = rows[position]
        own = slice(found["indptr"][k], found["indptr"][k + 1])
        extra = [1.0] * offset
        np.testing.assert_array_equal(found["slots"][own], [*[0] * offset, *(slots + offset)])
        np.testing.assert_array_equal(found["values"][own], [*extra, *values])
        np.testing.assert_array_equal(found["labels"][k], y)
        assert found["weights"][k] == w


def test_a_snapshot_does_not_change() -> None:
    reservoir = Reservoir(10_000, 1)
    sums = observed(reservoir, 500)
    snapshot = reservoir.snapshot()
    places, cells, _ = sums.cells.samples()
    before, kept = gather_rows(snapshot), (places.copy(), cells.copy())
    observed(reservoir, 5000, 500, sums)
    after = gather_rows(snapshot)
    for name, value in before.items():
        np.testing.assert_array_equal(value, after[name])
    for ours, theirs in zip((places, cells), kept, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_checkpoint_copies_only_the_end() -> None:
    reservoir = Reservoir(64_000_000, 1)
    observed(reservoir, 60_000)
    first, second = reservoir.state(), reservoir.state()
    shared = [a is b for a, b in zip(first["segments"], second["segments"], strict=True)]
    assert len(shared) > 3
    assert shared == [True] * (len(shared) - 1) + [False]
    assert len(first["segments"][-1]) <= 2**19


@pytest.mark.parametrize("memory", [20_000, 200_000])
def test_another_memory_at_restore(memory: int) -> None:
    reservoir = Reservoir(100_000, 1)
    sums = observed(reservoir, 9000)
    other = Reservoir(memory, 7)
    other.restore(reservoir.state())
    resumed = ProgressiveSums(L.Squared(), other)
    resumed.restore(sums.state())
    assert other.bytes <= 1.1 * memory
    observed(other, 9000, 9000, resumed)
    found = gather_rows(other.snapshot())
    np.testing.assert_array_equal(found["positions"], members(other, 18_000))


def test_damaged_samples_are_refused() -> None:
    reservoir = Reservoir(10_000, 1)
    observed(reservoir, 500)
    state = reservoir.state()
    segments = state["segments"]
    for damaged in (
        {"segments": [segments[0][1:], *segments[1:]]},
        {"rows": [rows + 1 for rows in state["rows"]]},
        {"segments": [np.frombuffer(b"a" * len(one), np.uint8) for one in segments]},
    ):
        with pytest.raises(ValueError, match="damaged"):
            Reservoir(10_000).restore({**state, **damaged})
    with pytest.raises(ValueError, match="labels"):
        Reservoir(10_000, width=2).restore(state)


def test_rows_larger_than_the_memory() -> None:
    """Each is kept alone, or dropped; nothing breaks."""
    reservoir = Reservoir(10_000, 1)
    sums = ProgressiveSums(L.Squared(), reservoir)
    for turn, n in itertools.product(range(20), (1000, 5, 4000)):
        sums.observe([0, n], np.arange(n), np.full(n, 0.1), [turn], None, [0.0])
    assert not reservoir.failed
    assert reservoir.bytes < 100_000
    assert len(gather_rows(reservoir.snapshot())["weights"]) < 10


@pytest.mark.parametrize("memory", [None, 20_000])
def test_parts_join_to_the_sample_and_the_sums_of_all(memory: int | None) -> None:
    """Rows are numbered in turn, so that the whole has the same positions."""
    whole, owner = Reservoir(memory, 5), Reservoir(memory, 5)
    alone, joined = ProgressiveSums(L.Squared(), whole), ProgressiveSums(L.Squared(), owner)
    workers = [ProgressiveSums(L.Squared(), Reservoir(memory, 5)) for _ in range(3)]
    observed(owner, 300, 0, joined)
    for first in (300, 900):
        parts, samples = [], []
        for rank, sums in enumerate(workers):
            sums.reservoir.begin(owner.threshold)
            sums.begin(joined.place + rank, 3)
            for k in range(200):
                observed(sums.reservoir, 1, first + rank + 3 * k, sums)
            parts.append(sums.part())
            samples.append(sums.reservoir.snapshot())
        owner.join(samples)
        joined.join(parts)
    observed(owner, 100, 1500, joined)
    observed(whole, 1600, 0, alone)
    assert (joined.events, joined.weight, joined.place) == (1600, 1600.0, 1600)
    assert joined.progressive_loss == pytest.approx(alone.progressive_loss, rel=1e-12)
    np.testing.assert_array_equal(joined.cell_weights(), alone.cell_weights())
    rows = [gather_rows(one.snapshot()) for one in (owner, whole)]
    limit = min(owner.threshold, whole.threshold)
    for one, sums in zip(rows, (joined, alone), strict=True):
        expected = [k for k in members(owner, 1600) if keys_of(np.array([k]), 5)[0] <= limit]
        kept = keys_of(one["positions"], 5) <= limit
        assert sorted(one["positions"][kept].tolist()) == expected
        np.testing.assert_array_equal(one["labels"][:, 0], one["positions"])
        assert set(one["positions"].tolist()) <= set(sums.cells.current_samples()[0].tolist())
    assert len(expected) > 50
    if memory is not None:
        assert owner.bytes < 1.2 * memory


def test_samples_of_another_seed_do_not_join() -> None:
    with pytest.raises(ValueError, match="seed"):
        Reservoir(None, 1).join([Reservoir(None, 2).snapshot()])
