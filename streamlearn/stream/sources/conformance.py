"""The laws that every source obeys, as a test of sources by others.

The daemon learns each record exactly once if its source keeps these laws. The test reads a source
several times, so it must give the same records each time.
"""

from __future__ import annotations

import json
import time
from itertools import repeat
from typing import TYPE_CHECKING

from streamlearn.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamlearn.stream.records import Header, Partition, Records
    from streamlearn.stream.sources.source import Source

    Record = tuple[int, bytes | None, bytes | None, int | None, tuple[Header, ...]]
    Log = dict[Partition, list[Record]]

POLL_SECONDS = 0.25
BEYOND = 1 << 40  # added to a position, so that no record is there


def check_source(make: Callable[[], Source], *, seconds: float = 30.0) -> None:
    """Raise AssertionError unless a source can be resumed exactly, anywhere.

    Parameters
    ----------
    make
        Returns a new source of the same records, which must end, and be at least three.
    seconds
        How long one reading may take.

    Examples
    --------
    >>> from streamlearn.stream import Clicks, Synthetic
    >>> check_source(lambda: Synthetic(Clicks(seed=1), events=50, batch=8))
    """
    source = make()
    batches = read(source, {}, None, seconds)
    identity = source.identity()
    for one in batches:
        check_records(one)
    check_order(batches)
    whole = log_of(batches)
    check_ends(source, batches)
    source.close()
    source.close()  # is allowed twice
    assert sum(map(len, whole.values())) >= 3, "give the test at least three records"
    assert json.loads(json.dumps(identity)) == identity, "identity() must be texts by texts"
    # after each batch, as after a crash between two batches
    for n in range(len(batches) + 1):
        positions = {one.partition: one.end for one in batches[:n]}
        check_rest(make, positions, identity, batches, whole, seconds)
    # in the middle of a batch, as after a run that ended at a number of events
    largest = max(batches, key=lambda one: len(one.offsets))
    before = batches[: batches.index(largest)]
    for i in range(min(len(largest.offsets), 5)):
        positions = {one.partition: one.end for one in before}
        positions[largest.partition] = largest.part(0, i + 1).end
        check_rest(make, positions, identity, batches, whole, seconds)
    check_unknown_positions(make, batches, identity, seconds)


def read(
    source: Source,
    positions: Mapping[Partition, int],
    identity: Mapping[str, str] | None,
    seconds: float,
) -> list[Records]:
    """Read all records from these positions."""
    batches: list[Records] = []
    until = time.monotonic() + seconds
    source.open(positions, identity)
    identity = source.identity()
    while not source.ended():
        batches += source.poll(POLL_SECONDS)
        assert time.monotonic() < until, f"the source did not end within {seconds} seconds"
        assert source.identity() == identity, "identity() must not change with the positions"
    return [one for one in batches if len(one.offsets)]


def log_of(batches: list[Records]) -> Log:
    """Return the records of each partition."""
    found: Log = {}
    for one in batches:
        n = len(one.offsets)
        found.setdefault(one.partition, []).extend(
            zip(
                one.offsets,
                one.values,
                one.keys or repeat(None, n),
                one.times or repeat(None, n),
                map(tuple, one.headers or repeat((), n)),
                strict=True,
            )
        )
    return found


def check_records(records: Records) -> None:
    """Check the parts of one batch."""
    where, n = records.partition, len(records.offsets)
    for name in ("values", "keys", "times", "headers", "ranks", "epochs"):
        part = getattr(records, name)
        if part is not None:
            assert len(part) == n, f"{where}: {name} must have one item for each of {n} offsets"
    for value in records.values:
        assert value is None or isinstance(value, bytes), f"{where}: values are bytes or None"
    assert records.end > records.offsets[-1], f"{where}: end is behind the last offset"


def check_order(batches: list[Records]) -> None:
    """Check that offsets increase within each partition."""
    ends: dict[Partition, int] = {}
    for one in batches:
        last = ends.get(one.partition, -1)
        for offset in one.offsets:
            assert offset >= max(last, 0), (
                f"{one.partition}: offset {offset} is not above {last - 1}"
            )
            last = offset + 1
        ends[one.partition] = one.end


def check_ends(source: Source, batches: list[Records]) -> None:
    """Check what a source tells after its last record."""
    assert source.poll(0.0) == [], "poll() after the end must return nothing"
    assert source.ended(), "ended() must stay true"
    lag = source.lag()
    for one in batches:
        assert one.partition in lag, f"lag() must have {one.partition}"
        assert not lag[one.partition], f"{one.partition}: lag() must be 0 at the end"
    assert all(lost >= 0 for lost in source.lost().values()), "lost() are counts"
    source.commit({one.partition: one.end for one in batches})


def check_rest(
    make: Callable[[], Source],
    positions: Mapping[Partition, int],
    identity: Mapping[str, str],
    batches: list[Records],
    whole: Log,
    seconds: float,
) -> None:
    """Check that a source opened at these positions gives exactly the records after them."""
    source = make()
    try:
        found = log_of(read(source, positions, identity, seconds))
    finally:
        source.close()
    for where in {one.partition for one in batches}:
        at = positions.get(where, 0)
        expected = [one for one in whole[where] if one[0] >= at]
        assert found.get(where, []) == expected, f"{where}: resumed at {at}, other records came"


def check_unknown_positions(
    make: Callable[[], Source],
    batches: list[Records],
    identity: Mapping[str, str],
    seconds: float,
) -> None:
    """Check that a position behind the end is refused: going on elsewhere would lose records."""
    last = batches[-1]
    source = make()
    try:
        source.open({last.partition: last.end + BEYOND}, identity)
        until = time.monotonic() + seconds
        while not source.ended() and time.monotonic() < until:
            source.poll(POLL_SECONDS)
    except SourceError:
        return
    finally:
        source.close()
    raise AssertionError(f"{last.partition}: a position behind the end must raise SourceError")
