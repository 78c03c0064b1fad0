"""Compare the default model with Vowpal Wabbit's optimizers: one pass, progressive loss.

python -m benchmarks.default [--data DIR] [--only NAME ...] [--peers]
"""

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import streamlearn as sl
from benchmarks import data, peers, streams
from benchmarks.report import table

if TYPE_CHECKING:
    from benchmarks.data import Examples, Labels, Rows

Losses: TypeAlias = dict[str, float]
OURS = "streamlearn"
MEMBERS = sl.rules.Mixture().rules


def log_loss(scores: "Labels", labels: "Labels") -> float:
    """Return the mean of log(1 + exp(-y score)) without overflow; NaN stays NaN."""
    return float(np.logaddexp(0.0, -labels * scores).mean())


def classify(rows: "Rows", labels: "Labels", rule: "sl.rules.Rule | None" = None) -> float:
    """Return the progressive log-loss of our classifier."""
    return log_loss(sl.LinearClassifier(rule).progressive_rows(rows, labels), labels)


def regress(rows: "Rows", labels: "Labels") -> float:
    """Return the progressive squared error of our regressor over the variance of the labels."""
    errors = sl.LinearRegressor().progressive_rows(rows, labels) - labels
    return float(np.square(errors).mean() / labels.var())


def vowpal_wabbit(examples: "Examples", *, loss: str) -> Losses:
    """Return the same measure for each of Vowpal Wabbit's optimizers, through its text format."""
    unit = 1.0 if loss == "logistic" else float(examples.labels.var())
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rows.txt"
        peers.write_vw(examples.rows, examples.labels, path)
        return {
            name: peers.vowpal_wabbit(path, options, loss=loss) / unit
            for name, options in peers.OPTIMIZERS.items()
        }


def compare(
    sources: tuple[data.Source, ...], args: argparse.Namespace, *, loss: str
) -> list[Losses]:
    """Print the table of these data sets, and return its numbers."""
    ours = classify if loss == "logistic" else regress
    found: dict[str, Losses] = {}
    for source in sources:
        if args.only and source.name not in args.only:
            continue
        if not (args.data / source.file).exists():
            print(f"skipped {source.name}: no {source.file} in {args.data}")
            continue
        examples = data.load(source, args.data)
        found[source.name] = vowpal_wabbit(examples, loss=loss)
        if not args.peers:
            found[source.name][OURS] = ours(examples.rows, examples.labels)
    print(table(_head(), [_line(name, losses) for name, losses in found.items()]), "\n")
    return list(found.values())


def _head() -> list[str]:
    optimizers = [f"VW {name}" for name in peers.OPTIMIZERS]
    return ["data set", *optimizers, OURS, "ratio to VW default", "ratio to best VW"]


def _line(name: str, losses: Losses) -> list[str]:
    vw = [losses[optimizer] for optimizer in peers.OPTIMIZERS]
    line = [name, *(f"{loss:.4f}" for loss in vw)]
    if OURS not in losses:
        return [*line, "", "", ""]
    ours = losses[OURS]
    return [*line, f"{ours:.4f}", f"{ours / vw[0]:.3f}", f"{ours / min(vw):.3f}"]


def summarize(losses: list[Losses]) -> None:
    """Print on how many data sets we match or beat Vowpal Wabbit, and the mean ratio."""
    ours = np.array([line[OURS] for line in losses])
    vw = np.array([[line[name] for name in peers.OPTIMIZERS] for line in losses])
    ratio = float(np.exp(np.log(ours / vw[:, 0]).mean()))
    best = vw.min(axis=1)
    counts = (ours <= vw[:, 0]).sum(), (ours <= best).sum()
    print(f"Loss at most that of VW's default on {counts[0]} of {len(ours)} data sets,")
    print(f"at most that of the best of its four optimizers on {counts[1]}.")
    print(f"Geometric mean of the ratio to VW's default: {ratio:.3f}.\n")


def generated(args: argparse.Namespace) -> None:
    """Print the table of the synthetic streams, with the members of the default mixture."""
    lines = []
    for name in streams.STREAMS:
        if args.only and name not in args.only:
            continue
        rows, labels = streams.generate(name)
        vw = vowpal_wabbit(data.Examples(name, rows, labels), loss="logistic")
        line = [name, f"{vw['default']:.4f}", f"{min(vw.values()):.4f}"]
        if not args.peers:
            members = [classify(rows, labels, rule) for rule in MEMBERS]
            ours = classify(rows, labels)
            line += [f"{loss:.4f}" for loss in (*members, ours)]
            line.append(f"{ours / min(members):.3f}{'*' if name in streams.MOVING else ''}")
        lines.append(line)
    ours_head = [] if args.peers else [*map(repr, MEMBERS), OURS, "ratio to best member"]
    print(table(["stream", "VW default", "best VW", *ours_head], lines))
    print("\n`*` the target moves: a mixture can track it better than any single member.")


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.default", description=__doc__)
    parser.add_argument("--data", type=Path, default=data.HOME, help="where the data sets are")
    parser.add_argument("--only", nargs="+", default=(), help="only these data sets and streams")
    parser.add_argument("--peers", action="store_true", help="run only the peers")
    args = parser.parse_args()
    print("Progressive log-loss after one pass\n")
    losses = compare(data.CLASSIFICATION, args, loss="logistic")
    if losses and not args.peers:
        summarize(losses)
    print("Progressive mean squared error / variance of the label after one pass\n")
    compare(data.REGRESSION, args, loss="squared")
    print("Progressive log-loss on synthetic streams\n")
    generated(args)


if __name__ == "__main__":
    main()
