"""Reproduce the papers' experiments, with a table and a picture of each.

python -m benchmarks.papers [--only NAME] [--data DIR] [--quick] [--permutations N] [--pictures DIR]
"""

import argparse
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import benchmarks.papers
from benchmarks.data import HOME
from benchmarks.papers.finding import Finding

Experiment: TypeAlias = Callable[..., Finding]


def experiments() -> Iterator[tuple[str, Experiment]]:
    """Find every module of this package that has a `run`, by name."""
    for found in pkgutil.iter_modules(benchmarks.papers.__path__):
        if found.name != "__main__":
            module = importlib.import_module(f"benchmarks.papers.{found.name}")
            run: Experiment | None = getattr(module, "run", None)
            if run is not None:
                yield found.name, run


def main() -> None:
    """Run all experiments, or those given."""
    known = dict(experiments())
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("--only", choices=sorted(known), action="append")
    parser.add_argument("--data", type=Path, default=HOME)
    parser.add_argument("--quick", action="store_true", help="on small generated data")
    parser.add_argument("--permutations", type=int, help="number of random orders")
    parser.add_argument("--pictures", type=Path, default=Path(), help="output directory")
    args = parser.parse_args()
    args.pictures.mkdir(parents=True, exist_ok=True)
    for name in args.only or known:
        options = {"quick": args.quick}
        if args.permutations and "permutations" in inspect.signature(known[name]).parameters:
            options["permutations"] = args.permutations
        finding = known[name](args.data, **options)
        print(finding.text(), flush=True)
        finding.save(args.pictures / f"{name}.png")


if __name__ == "__main__":
    main()
