"""Compare the default model with Vowpal Wabbit's default and with its best settings in hindsight.

python -m benchmarks.default [--data DIR] [--only NAME ...] [--average]

One pass; the loss of a row is taken before it is learned. "Tuned in hindsight" is the lowest loss
of Vowpal Wabbit over `peers.VW_SETTINGS` on the same rows: what a user would get who knew the best
settings in advance.

--average: the default beside itself with one more member, the average of its follower.
"""

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import streamlearn as sl
from benchmarks import data, peers, streams
from benchmarks.report import table

if TYPE_CHECKING:
    from benchmarks.data import Examples, Labels, Rows

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


@dataclass(frozen=True)
class Comparison:
    """The losses on one data set: ours, and Vowpal Wabbit's by settings."""

    name: str
    ours: float
    theirs: dict[str, float]

    @property
    def default(self) -> float:
        """The loss of Vowpal Wabbit's default settings."""
        return self.theirs[peers.VW_DEFAULT]

    @property
    def tuned(self) -> tuple[float, str]:
        """The lowest of Vowpal Wabbit's losses, and its settings."""
        return min((loss, options) for options, loss in self.theirs.items())

    def line(self) -> list[str]:
        """Return the line of the table."""
        best, options = self.tuned
        losses = [f"{loss:.4f}" for loss in (self.ours, self.default, best)]
        ratios = [f"{self.ours / loss:.3f}" for loss in (self.default, best)]
        return [self.name, *losses, f"`{options}`", *ratios]


HEAD = [
    "data set",
    "streamlearn",
    "VW default",
    "VW tuned in hindsight",
    "its settings",
    "ratio to VW default",
    "ratio to tuned VW",
]


def vowpal_wabbit(examples: "Examples", *, loss: str) -> dict[str, float]:
    """Return the same measure for Vowpal Wabbit by settings, through its text format."""
    unit = 1.0 if loss == "logistic" else float(examples.labels.var())
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rows.txt"
        peers.write_vw(examples.rows, examples.labels, path)
        losses = {
            options: peers.vowpal_wabbit(path, options, loss=loss) / unit
            for options in peers.VW_SETTINGS
        }
    return {options: found for options, found in losses.items() if np.isfinite(found)}


def compare(
    sources: tuple[data.Source, ...], args: argparse.Namespace, *, loss: str
) -> list[Comparison]:
    """Print the table of these data sets, and return its numbers."""
    ours = classify if loss == "logistic" else regress
    found = []
    for source in sources:
        if args.only and source.name not in args.only:
            continue
        if not (args.data / source.file).exists():
            print(f"skipped {source.name}: no {source.file} in {args.data}")
            continue
        examples = data.load(source, args.data)
        own = ours(examples.rows, examples.labels)
        found.append(Comparison(source.name, own, vowpal_wabbit(examples, loss=loss)))
    print(table(HEAD, [one.line() for one in found]), "\n")
    return found


def summarize(found: list[Comparison]) -> None:
    """Print on how many data sets we match or beat Vowpal Wabbit, and the mean ratios."""
    for name, losses in (
        ("Vowpal Wabbit's default", [one.default for one in found]),
        ("Vowpal Wabbit tuned in hindsight", [one.tuned[0] for one in found]),
    ):
        ratios = np.array([one.ours for one in found]) / losses
        mean = float(np.exp(np.log(ratios).mean()))
        count = (ratios <= 1.0).sum()
        print(f"At most the loss of {name} on {count} of {len(found)} data sets,")
        print(f"with a geometric mean of the ratio of {mean:.3f}.\n")


def generated(args: argparse.Namespace) -> None:
    """Print the table of the synthetic streams, with the members of the default mixture."""
    lines = []
    for name in streams.STREAMS:
        if args.only and name not in args.only:
            continue
        rows, labels = streams.generate(name)
        ours = classify(rows, labels)
        theirs = vowpal_wabbit(data.Examples(name, rows, labels), loss="logistic")
        members = [classify(rows, labels, rule) for rule in MEMBERS]
        line = Comparison(name, ours, theirs).line()
        line += [f"{loss:.4f}" for loss in members]
        line.append(f"{ours / min(members):.3f}{'*' if name in streams.MOVING else ''}")
        lines.append(line)
    print(table([*HEAD, *map(repr, MEMBERS), "ratio to best member"], lines))
    print("\n`*` the target moves: a mixture can track it better than any single member.")


def averaged(args: argparse.Namespace) -> None:
    """Print the table of the default beside itself with the average of its follower."""
    follower = sl.rules.PolynomialAverage(sl.rules.MirrorDescent(16.0))
    more = sl.rules.Mixture((*MEMBERS[:-1], follower, MEMBERS[-1]))
    lines = []
    for source in (*data.CLASSIFICATION, *data.UNSEEN):
        if args.only and source.name not in args.only:
            continue
        if not (args.data / source.file).exists():
            continue
        examples = data.load(source, args.data)
        losses = [classify(examples.rows, examples.labels, rule) for rule in (None, more)]
        lines.append([source.name, *(f"{x:.4f}" for x in losses), f"{losses[1] / losses[0]:.4f}"])
    for name in streams.STREAMS:
        if args.only and name not in args.only:
            continue
        losses = [classify(*streams.generate(name, seed=7), rule) for rule in (None, more)]
        lines.append([name, *(f"{x:.4f}" for x in losses), f"{losses[1] / losses[0]:.4f}"])
    print(table(["stream", "the default", "with the average", "ratio"], lines))


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.default", description=__doc__)
    parser.add_argument("--data", type=Path, default=data.HOME, help="where the data sets are")
    parser.add_argument("--only", nargs="+", default=(), help="only these data sets and streams")
    parser.add_argument("--average", action="store_true", help="only add the follower's average")
    args = parser.parse_args()
    if args.average:
        averaged(args)
        return
    print("Progressive log-loss after one pass\n")
    found = compare(data.CLASSIFICATION, args, loss="logistic")
    if found:
        summarize(found)
    print("Progressive mean squared error / variance of the label after one pass\n")
    compare(data.REGRESSION, args, loss="squared")
    print("Progressive log-loss on synthetic streams\n")
    generated(args)


if __name__ == "__main__":
    main()
