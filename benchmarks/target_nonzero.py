"""How closely a number of weights is kept, beside l1 with the strength that was found.

python -m benchmarks.target_nonzero [--data DIR] [--only NAME ...]

One pass over the first 50,000 rows of the data sets and over the synthetic streams. The weights are
counted 200 times; the first quarter is the warm-up.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import streamlearn as sl
from benchmarks import data, streams
from benchmarks.report import table
from benchmarks.sparse_baselines import log_loss

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Labels, Rows

ROWS = 50_000
READINGS = 200
TARGETS = {  # of others, a quarter and a half of the columns
    "a9a": (10, 40),
    "rcv1v2_ccat": (50, 300, 2000),
    "sms_spam": (30, 200, 1000),
    "openbandit": (5, 20, 100),
    "zipf": (50, 500, 2000),
}
HEAD = ["stream", "target", "within 10%, or 1", "from", "to", "median", "strength", "loss"]
HEAD_FIXED = ["loss of l1 with that strength", "its weights"]


def every(args: argparse.Namespace) -> "Iterator[tuple[str, Rows, Labels]]":
    """Generate the name, the rows and the labels of each stream."""
    for source in data.CLASSIFICATION:
        if (not args.only or source.name in args.only) and (args.data / source.file).exists():
            examples = data.load(source, args.data, ROWS)
            yield source.name, examples.rows, examples.labels
    for name in streams.STREAMS:
        if not args.only or name in args.only:
            yield name, *streams.generate(name)


def follow(rows: "Rows", labels: "Labels", penalty: Any) -> tuple[float, Any, Any]:
    """Return the progressive loss, and the counts of weights and strengths along the stream."""
    model = sl.LinearClassifier(penalty=penalty)
    scores, counts, strengths = np.empty(len(labels)), [], []
    for part in np.array_split(np.arange(len(labels)), READINGS):
        some = slice(part[0], part[-1] + 1)
        scores[some] = model.progressive_rows(rows[some], labels[some])
        counts.append(model.nonzero)
        strengths.append(getattr(model.rules[0], "strength", 0.0))
    settled = READINGS // 4
    return log_loss(scores, labels), np.array(counts[settled:]), np.array(strengths[settled:])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.target_nonzero", description=__doc__
    )
    parser.add_argument("--data", type=Path, default=data.HOME, help="where the data sets are")
    parser.add_argument("--only", nargs="+", default=(), help="only these data sets and streams")
    lines = []
    for name, rows, labels in every(parser.parse_args()):
        columns = rows.shape[1]
        for target in TARGETS.get(name, (max(columns // 4, 2), columns // 2)):
            loss, counts, strengths = follow(rows, labels, sl.penalties.TargetNonzero(target))
            within = np.abs(counts - target) <= max(1.0, 0.1 * target)
            strength = float(np.median(strengths))
            fixed, left, _ = follow(rows, labels, sl.penalties.L1(strength))
            line = [name, f"{target}", f"{within.mean():.0%}", f"{counts.min()}", f"{counts.max()}"]
            line += [f"{np.median(counts):g}", f"{strength:.1e}", f"{loss:.4f}"]
            lines.append([*line, f"{fixed:.4f}", f"{left[-1]}"])
    print(table([*HEAD, *HEAD_FIXED], lines))


if __name__ == "__main__":
    main()
