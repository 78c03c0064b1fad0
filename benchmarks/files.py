"""Learn a file in one pass, compared with Vowpal Wabbit on the same file.

python -m benchmarks.files [--events N] [--rounds N]

Both sides have the same file, loss, features (2^18 hashed slots) and one pass, in one process, in
alternation; wall time, Vowpal Wabbit without its cache. "VW rule" is NormalizedAdaptive, the rule
of Vowpal Wabbit's default, with the intercept as a feature; its progressive loss over 200,000 lines
is 0.1% below Vowpal Wabbit's (0.7% with the different digits of svmlight). Both sides parse in one
thread and learn in another.

A line of Vowpal Wabbit's text with this rule takes 8,600 instructions by callgrind: 40% for names
and decimals, 20% for hashes and rows, 23% for the rule and the loss; the rest is reading blocks,
splitting lines, labels, and Python's overhead per batch. Lines are decoded in place in their block,
without the GIL, so the two threads run concurrently. svmlight has 16 digits per value here, Vowpal
Wabbit's text 9; a line of either takes the same time, because sixteen digits are read at a time.
"""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file

import streamlearn as sl
from benchmarks import peers
from benchmarks.report import alternate, table, unprepared
from benchmarks.workload import NAMES, make_rows
from streamlearn.stream import Fields, Files, decoded_batches, decoder_of
from streamlearn.stream.sources.prefetch import prefetched

BITS = 18  # Vowpal Wabbit's default


def normalized() -> sl.LinearClassifier:
    """Return a learner with the rule of Vowpal Wabbit's default and its kind of intercept."""
    rule = sl.rules.NormalizedAdaptive(0.5, "invariant")
    return sl.LinearClassifier(rule, features=sl.Hashing(BITS), fit_intercept="penalized")


def dual_averaging() -> sl.LinearClassifier:
    """Return a sparse learner."""
    return sl.DualAveragingClassifier(l1=1e-4, features=sl.Hashing(BITS))


def learn_file(path: Path, kind: str, make: Callable[[], sl.LinearClassifier]) -> float:
    """Read and learn a file in one pass; return the progressive loss."""
    model, total, count = make(), 0.0, 0
    reader = sl.Hashing(BITS)
    model.share_features(reader)
    source = Files([path])
    for batch in prefetched(
        decoded_batches(source, decoder_of(kind, reader, Fields(label=None), [model]))
    ):
        if batch is not None:
            events = batch[1]
            scores = model.progressive_events(events).scores
            total += float(np.logaddexp(0.0, -events.labels * scores).sum())
            count += len(events)
    source.close()
    return total / count


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.files", description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        vw, svmlight = Path(directory) / "x.vw", Path(directory) / "x.svm"
        rows, signs = make_rows(args.events, NAMES)
        peers.write_vw(rows, signs, vw)
        dump_svmlight_file(rows, signs, str(svmlight))
        theirs: Callable[[], float] = partial(peers.vowpal_wabbit, vw, bits=BITS)
        runs: dict[str, Callable[[], float]] = {
            "Vowpal Wabbit": theirs,
            "streamlearn, VW text, VW rule": partial(learn_file, vw, "vw", normalized),
            "streamlearn, VW text, l1 dual averaging": partial(
                learn_file, vw, "vw", dual_averaging
            ),
            "streamlearn, svmlight, VW rule": partial(learn_file, svmlight, "svmlight", normalized),
        }
        losses = {name: run() for name, run in runs.items()}
        prepared = {name: partial(unprepared, run) for name, run in runs.items()}
        timings = alternate(prepared, args.rounds)
        print(f"{args.events:,} lines of 20 features, median of {args.rounds} rounds\n")
        vowpal_wabbit = timings["Vowpal Wabbit"]
        lines = [
            [
                name,
                timing.per_event(args.events),
                "{:.2f} ({:.2f} to {:.2f})".format(*timing.ratio(vowpal_wabbit)),
                f"{losses[name]:.4f}",
            ]
            for name, timing in timings.items()
        ]
        print(table(["program", "us/line", "speed, VW = 1", "progressive log-loss"], lines))


if __name__ == "__main__":
    main()
