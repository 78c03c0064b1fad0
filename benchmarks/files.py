"""A file to a model in one pass, beside Vowpal Wabbit on the same file, in one process and in turn.

python -m benchmarks.files [--events N] [--rounds N]

Equal footing: the same file, loss, features (2^18 slots by hash) and one pass, wall time, Vowpal
Wabbit without its cache. "Its rule" is NormalizedAdaptive, the one of Vowpal Wabbit's default, with
an intercept that is a feature; its progressive loss of 200,000 lines is .1% below theirs (.7% with
the other digits of svmlight). Both sides parse in one thread and learn in another.

Where the time goes, of a line of Vowpal Wabbit's text with its rule: 8,600 instructions, by the
count of callgrind, which a busy machine does not disturb, of them names and decimals 40%, hashes
and rows 20%, the rule and the loss 23%; the rest is reading blocks, cutting lines, labels, and
what Python adds by the batch. Lines are decoded where they lie in their block, without the GIL, so
the two threads do not take turns. svmlight here has 16 digits a value, Vowpal Wabbit's text 9; a
line of either takes as long, as digits are read sixteen at once.
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
from benchmarks.report import Run, alternate, table
from benchmarks.workload import NAMES, make_rows
from streamlearn.stream import Fields, Files, decoded, decoder_of
from streamlearn.stream.sources.ahead import ahead

BITS = 18  # Vowpal Wabbit's own


def normalized() -> sl.LinearClassifier:
    """The rule of Vowpal Wabbit's default, its intercept a feature as there, for equal losses."""
    rule = sl.rules.NormalizedAdaptive(0.5, "invariant")
    return sl.LinearClassifier(rule, features=sl.Hashing(BITS), fit_intercept="penalized")


def dual_averaging() -> sl.LinearClassifier:
    """Sparse learning."""
    return sl.DualAveragingClassifier(l1=1e-4, features=sl.Hashing(BITS))


def learn_file(path: Path, kind: str, make: Callable[[], sl.LinearClassifier]) -> float:
    """Read and learn a file in one pass; the average loss, each line's before it was learned."""
    model, total, count = make(), 0.0, 0
    reader = sl.Hashing(BITS)
    model.share_features(reader)
    source = Files([path])
    for batch in ahead(decoded(source, decoder_of(kind, reader, Fields(label=None), [model]))):
        if batch is not None:
            events = batch[1]
            scores = model.progressive_events(events)
            total += float(np.logaddexp(0.0, -events.labels * scores).sum())
            count += len(events)
    source.close()
    return total / count


def itself(run: Run) -> Run:
    """Nothing is to be prepared outside the clock: the file is read, and the model made, in it."""
    return run


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
            "streamlearn, its text, its rule": partial(learn_file, vw, "vw", normalized),
            "streamlearn, its text, l1 dual averaging": partial(
                learn_file, vw, "vw", dual_averaging
            ),
            "streamlearn, svmlight, its rule": partial(
                learn_file, svmlight, "svmlight", normalized
            ),
        }
        losses = {name: run() for name, run in runs.items()}
        timings = alternate({name: partial(itself, run) for name, run in runs.items()}, args.rounds)
        print(f"{args.events:,} lines of 20 features, median of {args.rounds} rounds\n")
        beside = timings["Vowpal Wabbit"]
        lines = [
            [
                name,
                timing.per_event(args.events),
                "{:.2f} ({:.2f} to {:.2f})".format(*timing.ratio(beside)),
                f"{losses[name]:.4f}",
            ]
            for name, timing in timings.items()
        ]
        print(table(["side", "us a line", "times as fast", "progressive log-loss"], lines))


if __name__ == "__main__":
    main()
