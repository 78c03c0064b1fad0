"""What readers cost the learner, and what a round costs workers.

python -m benchmarks.fleet [--only readers|rounds|model] [--events N] [--workers K]

Readers: the stages of one event in one process, from memory, without Kafka and Ray: JSON to rows
(a reader's work), rows to bytes and back to the learner's rows (the work that readers add), and
learning, from rows of the learner's own decoder and from packed ones. Ratios are of one run.

Rounds: what a worker and the owner do between two rounds, at 2^20 slots, of which a share was
touched: the worker's moves, its start from the next base, and the owner's merge, in one process and
one thread, in seconds of a core (on a machine with other work, the clock would measure that).

Model: what these times make of more cores. With readers, one core learns and the others read; with
workers, each reads and learns, and waits during merges, whose time grows with their number.
"""

from __future__ import annotations

import argparse
import pickle
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np
from scipy.sparse import csr_array

import streamlearn as sl
from benchmarks.formats import make_records
from benchmarks.report import Timing, alternate, table, unprepared
from streamlearn.estimators.merging import ModelMove, ModelSnapshot, merge
from streamlearn.rules.copy_buffer import CopyBuffer
from streamlearn.stream import Events, Fields, decoder_of
from streamlearn.stream.formats.packed import PackedDecoder
from streamlearn.stream.packed_rows import PackedRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# how one worker moved, how the model did, and the seconds of each stage
Stall: TypeAlias = tuple[ModelMove, ModelMove, dict[str, float]]
Timings: TypeAlias = dict[str, Timing]

BATCH = 2000
PARTITIONS = 4  # in a batch
ROUNDS = 4  # of which the first one allocates
SECONDS = 10.0  # of a round, in the model
BITS = 20
MODELS: dict[str, Callable[..., Any]] = {
    "l1": partial(sl.LinearClassifier, sl.rules.DualAveraging(5.0), penalty=sl.penalties.L1(1e-3)),
    "default": sl.LinearClassifier,
}
FIELDS = Fields(label="label", labels=(0, 1))
COPIES = [CopyBuffer() for _ in range(65)]  # of up to 64 workers, and of the owner


# -- readers ------------------------------------------------------------------------------------


def packed_bytes(values: list[bytes]) -> list[tuple[bytes, list[bytes]]]:
    """Return what a reader would send of one partition's records, in chunks."""
    decoder, sent = decoder_of("json", sl.Hashing(20), FIELDS), []
    size = BATCH // PARTITIONS
    for start in range(0, len(values), size):
        chunk, events = values[start : start + size], Events()
        buffers: list[pickle.PickleBuffer] = []
        decoder.decode(chunk, events)
        text = pickle.dumps(PackedRows.of(chunk, events), 5, buffer_callback=buffers.append)
        sent.append((text, [bytes(buffer.raw()) for buffer in buffers]))
    return sent


def unpack(sent: list[tuple[bytes, list[bytes]]]) -> list[Events]:
    """Turn what readers sent into the learner's rows, a batch of several partitions at a time."""
    decoder, batches = PackedDecoder(sl.Hashing(20), FIELDS), []
    for start in range(0, len(sent), PARTITIONS):
        parts = [
            pickle.loads(text, buffers=buffers)
            for text, buffers in sent[start : start + PARTITIONS]
        ]
        batches.append(Events())
        decoder.decode(PackedRows.joined(parts), batches[-1])
    return batches


def decode(values: list[bytes]) -> list[Events]:
    """Decode JSON to rows, as a daemon without readers does."""
    decoder, batches = decoder_of("json", sl.Hashing(20), FIELDS), []
    for start in range(0, len(values), BATCH):
        batches.append(Events())
        decoder.decode(values[start : start + BATCH], batches[-1])
    return batches


def learn(make: Callable[..., Any], batches: list[Events]) -> Callable[[], None]:
    """Return a run of a fresh model over rows."""
    model = make(features=sl.Hashing(20))
    model.progressive_events(batches[0])  # allocates all slots

    def run() -> None:
        for events in batches:
            model.progressive_events(events)

    return run


def stages(values: list[bytes], sent: list[tuple[bytes, list[bytes]]], rounds: int) -> Timings:
    """Time the stages of an event."""
    plain, packed = decode(values), unpack(sent)
    sides: dict[str, Callable[[], Any]] = {
        "JSON to rows": partial(unprepared, partial(decode, values)),
        "JSON to rows, and to bytes": partial(unprepared, partial(packed_bytes, values)),
        "bytes to rows": partial(unprepared, partial(unpack, sent)),
    }
    for name, make in MODELS.items():
        sides[f"learn, {name}"] = partial(learn, make, plain)
        sides[f"learn packed rows, {name}"] = partial(learn, make, packed)
    return alternate(sides, rounds)


def readers(events: int, rounds: int) -> None:
    """Print the stages of an event."""
    values = [msgspec.json.encode(record) for record in make_records(events)]
    sent = packed_bytes(values)
    timings = stages(values, sent, rounds)
    lines = []
    for name, timing in timings.items():
        base = name.replace(" packed rows", "").replace(", and to bytes", "")
        base = "JSON to rows" if base == "bytes to rows" else base
        ratio = "{:.2f} ({:.2f} to {:.2f})".format(*timings[base].ratio(timing))
        lines.append([name, timing.per_event(events), ratio])
    size = sum(len(text) + sum(map(len, buffers)) for text, buffers in sent) / events
    print(f"{events:,} records of 12 fields; {size:.0f} bytes of packed rows a record\n")
    print(table(["stage", "us/record", "ratio"], lines))


# -- rounds -------------------------------------------------------------------------------------


def rounds(workers: int) -> None:
    """Print what a round costs beside learning."""
    lines = []
    for name, make in MODELS.items():
        for share in (0.01, 0.2, 1.0):
            some = stalls(make, share, workers)
            move, merged, taken = some[-1]
            slowest = max(sum(one[2].values()) for one in some)
            lines.append(
                [name, f"{share:.0%}", f"{move.nbytes / 1e6:.1f}", f"{merged.nbytes / 1e6:.1f}"]
                + [f"{taken[stage]:.3f}" for stage in ("moves", "merge", "start")]
                + [f"{slowest:.3f}"]
            )
    print(f"{workers} workers, 2^{BITS} slots\n")
    head = ["model", "touched", "MB of a worker", "MB of the base", "moves s", "merge s"]
    print(table([*head, "start s", "slowest stall s"], lines))


def stalls(make: Callable[..., Any], share: float, workers: int) -> list[Stall]:
    """Return rounds in which each worker touched a share of the slots."""
    columns = max(int(share * (1 << BITS)), 12)
    size = columns // 4  # with 12 features each, so that nearly all columns are seen
    draw = np.random.default_rng(0)
    model = make(features=sl.Hashing(BITS))
    model.know_labels([False, True])
    learn_random(model, draw, 1 << BITS, 1000)
    copies = []
    for _ in range(workers):
        copy = model.clone()
        copy.restore(model.state())
        copies.append((copy, ModelSnapshot(copy)))
    return [one_round(model, copies, draw, columns, size) for _ in range(ROUNDS)][1:]


def one_round(
    model: Any,
    copies: list[tuple[Any, ModelSnapshot]],
    draw: np.random.Generator,
    columns: int,
    size: int,
) -> Stall:
    """Let the copies learn and merge them; return moves, and how long each stage took."""
    taken: dict[str, float] = {}
    learned: list[ModelMove] = []
    for copy, base in copies:
        learn_random(copy, draw, columns, size)
        with COPIES[len(learned)] as buffer, timed(taken, "moves"):
            learned.append(base.moved())
            base.restore(learned[-1])
        buffer.reserve()
    with COPIES[-1] as buffer, timed(taken, "merge"):
        if any(move.has_nan for move in learned):
            raise FloatingPointError("a worker learned a weight that is not a number")
        moved = merge(model, learned)
    buffer.reserve()
    for _, base in copies:
        with timed(taken, "start"):
            base.advance(moved)
    return learned[0], moved, taken


def learn_random(model: Any, draw: np.random.Generator, columns: int, rows: int) -> None:
    """Learn rows of 12 random features."""
    X = csr_array(
        (
            np.ones(12 * rows),
            draw.integers(0, columns, 12 * rows),
            np.arange(0, 12 * rows + 1, 12),
        ),
        shape=(rows, 1 << 20),
    )
    X.sum_duplicates()
    model.learn_rows(X, draw.random(rows) < 0.3)


@contextmanager
def timed(taken: dict[str, float], name: str) -> Iterator[None]:
    """Note what something takes of a core, at most: the workers do it side by side."""
    start = time.thread_time()
    yield
    taken[name] = max(taken.get(name, 0.0), time.thread_time() - start)


# -- model --------------------------------------------------------------------------------------


def model(events: int, rounds: int) -> None:
    """Print what the measured times of the stages make of more cores."""
    values = [msgspec.json.encode(record) for record in make_records(events)]
    timings = stages(values, packed_bytes(values), rounds)
    cost = {name: 1e6 * timing.median / events for name, timing in timings.items()}
    reading = cost["JSON to rows, and to bytes"]
    lines = []
    for name, make in MODELS.items():
        alone = cost["JSON to rows"] + cost[f"learn, {name}"]
        learner = cost["bytes to rows"] + cost[f"learn packed rows, {name}"]
        few, many = (median_stall(make, count) for count in (2, 8))
        for count in (1, 2, 4, 8, 16, 32, 64):
            stall = few + (count - 2) * (many - few) / 6 if count > 1 else 0.0
            read = min((count - 1) / reading, 1.0 / learner) if count > 1 else 1.0 / alone
            share = SECONDS / (SECONDS + stall)
            lines.append(
                [
                    name,
                    str(count),
                    f"{read:.2f}",
                    f"{share * count / alone:.2f}",
                    f"{share:.2f}",
                    f"{stall:.2f}",
                ]
            )
    print(f"million events a second; rounds of {SECONDS:.0f} s that touch all of 2^{BITS} slots\n")
    print(table(["model", "cores", "readers", "workers", "workers / cores", "stall s"], lines))


def median_stall(make: Callable[..., Any], workers: int) -> float:
    """Return the seconds between rounds in which workers touch all slots."""
    return float(np.median([sum(one[2].values()) for one in stalls(make, 1.0, workers)]))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--only", choices=["readers", "rounds", "model"])
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--workers", type=int, default=8)
    args = parser.parse_args()
    if args.only in {None, "readers"}:
        readers(args.events, args.rounds)
    if args.only in {None, "rounds"}:
        rounds(args.workers)
    if args.only in {None, "model"}:
        model(args.events, args.rounds)


if __name__ == "__main__":
    main()
