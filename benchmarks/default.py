"""The default beside Vowpal Wabbit's optimizers: one pass, each row scored before it is learned.

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
    """The mean of log(1 + exp(-y score)), which does not overflow; not a number stays that."""
    return float(np.logaddexp(0.0, -labels * scores).mean())


def classify(rows: "Rows", labels: "Labels", rule: "sl.rules.Rule | None" = None) -> float:
    """The progressive log-loss of our classifier."""
    return log_loss(sl.LinearClassifier(rule).progressive_rows(rows, labels), labels)


def regress(rows: "Rows", labels: "Labels") -> float:
    """The progressive squared error of our regressor, in units of the labels' variance."""
    errors = sl.LinearRegressor().progressive_rows(rows, labels) - labels
    return float(np.square(errors).mean() / labels.var())


def beside(examples: "Examples", *, loss: str) -> Losses:
    """The same measure of each of Vowpal Wabbit's optimizers, through its text format."""
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
    """Print the table of these sets, and return its numbers."""
    ours = classify if loss == "logistic" else regress
    found: dict[str, Losses] = {}
    for source in sources:
        if args.only and source.name not in args.only:
            continue
        if not (args.data / source.file).exists():
            print(f"skipped {source.name}: no {source.file} in {args.data}")
            continue
        examples = data.load(source, args.data)
        found[source.name] = beside(examples, loss=loss)
        if not args.peers:
            found[source.name][OURS] = ours(examples.rows, examples.labels)
    print(table(_head("set"), [_line(name, losses) for name, losses in found.items()]), "\n")
    return list(found.values())


def _head(first: str) -> list[str]:
    return [first, *(f"VW {name}" for name in peers.OPTIMIZERS), OURS, "/ default", "/ best of VW"]


def _line(name: str, losses: Losses) -> list[str]:
    vw = [losses[optimizer] for optimizer in peers.OPTIMIZERS]
    line = [name, *(f"{loss:.4f}" for loss in vw)]
    if OURS not in losses:
        return [*line, "", "", ""]
    ours = losses[OURS]
    return [*line, f"{ours:.4f}", f"{ours / vw[0]:.3f}", f"{ours / min(vw):.3f}"]


def summarize(losses: list[Losses]) -> None:
    """Say in how many sets we are at or below Vowpal Wabbit, and by how much on average."""
    ours = np.array([line[OURS] for line in losses])
    vw = np.array([[line[name] for name in peers.OPTIMIZERS] for line in losses])
    ratio = float(np.exp(np.log(ours / vw[:, 0]).mean()))
    best = vw.min(axis=1)
    print(f"At or below VW's default on {(ours <= vw[:, 0]).sum()} of {len(ours)} sets,")
    print(f"at or below the best of its four on {(ours <= best).sum()};")
    print(f"geometric mean of the ratio to its default: {ratio:.3f}.\n")


def generated(args: argparse.Namespace) -> None:
    """The generated streams, beside the members that the default mixes."""
    lines = []
    for name in streams.STREAMS:
        if args.only and name not in args.only:
            continue
        rows, labels = streams.generate(name)
        vw = beside(data.Examples(name, rows, labels), loss="logistic")
        line = [name, f"{vw['default']:.4f}", f"{min(vw.values()):.4f}"]
        if not args.peers:
            members = [classify(rows, labels, rule) for rule in MEMBERS]
            ours = classify(rows, labels)
            line += [f"{loss:.4f}" for loss in (*members, ours)]
            line.append(f"{ours / min(members):.3f}{'*' if name in streams.MOVING else ''}")
        lines.append(line)
    ours_head = [] if args.peers else [*map(repr, MEMBERS), OURS, "/ best member"]
    print(table(["stream", "VW default", "best of VW", *ours_head], lines))
    print("\n`*` the target moves: a mixture may follow it better than any member.")


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.default", description=__doc__)
    parser.add_argument("--data", type=Path, default=data.HOME, help="where the data sets are")
    parser.add_argument("--only", nargs="+", default=(), help="these sets and streams alone")
    parser.add_argument("--peers", action="store_true", help="leave our own side out")
    args = parser.parse_args()
    print("Progressive log-loss after one pass\n")
    losses = compare(data.CLASSIFICATION, args, loss="logistic")
    if losses and not args.peers:
        summarize(losses)
    print("Progressive mean squared error / variance of the label\n")
    compare(data.REGRESSION, args, loss="squared")
    print("Progressive log-loss on generated streams\n")
    generated(args)


if __name__ == "__main__":
    main()
