"""Compare the default under l1 with rules whose step is tuned in hindsight.

python -m benchmarks.sparse [--data DIR] [--only NAME ...] [--tune] [--picture FILE]

One pass over the first 50,000 rows. The results of every setting of the tuned rules come from
sparse_baselines.json, which --tune remakes; the non-zero weights of the batch optimum too.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import streamlearn as sl
from benchmarks import data
from benchmarks.report import table
from benchmarks.sparse_baselines import Result, follow, tune
from benchmarks.sparse_picture import draw

ROWS = 50_000
STRENGTHS = (1e-2, 1e-3, 1e-4, 1e-5)
STORED = Path(__file__).with_name("sparse_baselines.json")
HEAD = ["set, l1", "best tuned rule", "the default", "batch non-zeros", "ratio"]
HEAD_FINAL = ["tuned for the last weights", "the default", "ratio"]
DRIFTING = ("elec2", "ijcnn1")


def best(case: Mapping[str, Any], key: str) -> tuple[str, Result]:
    """Return the setting with the least `key` of all families, and its result.

    Where only the best settings are stored, their last weights are unknown, and `final` is NaN.
    """
    found = [
        (family, Result(*numbers))
        for family, settings in case["settings"].items()
        for numbers in settings.values()
    ]
    numbers = [float(getattr(one, key)) for _, one in found]
    return found[0 if np.isnan(numbers).all() else int(np.nanargmin(numbers))]


def summarize(ours: Mapping[str, Result], stored: Mapping[str, Any]) -> None:
    """Print how often the default is as good as the best tuned rule."""
    ratio = np.array(
        [one.objective / best(stored[k], "objective")[1].objective for k, one in ours.items()]
    )
    few = [
        one.nonzero <= max(1.5 * stored[k]["batch"], stored[k]["batch"] + 2)
        for k, one in ours.items()
    ]
    print(f"Within 1% of the best tuned rule on {np.sum(ratio <= 1.01)} of {len(ratio)} cases,")
    print(f"better on {np.sum(ratio < 1.0)}; geometric mean {np.exp(np.log(ratio).mean()):.3f}.")
    print(f"Non-zeros at most 1.5 times the batch optimum's, or 2 more, on {np.sum(few)}.")
    final = {k: one.final / best(stored[k], "final")[1].final for k, one in ours.items()}
    calm = [x for k, x in final.items() if k.split()[0] not in DRIFTING]
    print(
        f"Objective of the last weights, of the best tuned for it: median "
        f"{np.nanmedian(list(final.values())):.4f}, mean without drift {np.nanmean(calm):.4f}"
    )
    print(f"({np.isfinite(list(final.values())).sum()} cases).")


def main() -> None:
    """Print the table, and how often the default is as good as the best tuned rule."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse", description=__doc__)
    parser.add_argument("--data", type=Path, default=data.HOME, help="where the data sets are")
    parser.add_argument("--only", nargs="+", default=(), help="only these data sets")
    parser.add_argument("--tune", action="store_true", help="tune the baselines again")
    parser.add_argument("--picture", type=Path, help="draw objective against non-zero weights")
    args = parser.parse_args()
    stored = json.loads(STORED.read_text("utf-8")) if STORED.exists() else {}
    lines, ours = [], {}
    for source in data.CLASSIFICATION:
        if (args.only and source.name not in args.only) or not (args.data / source.file).exists():
            continue
        examples = data.load(source, args.data, ROWS)
        for strength in STRENGTHS:
            key = f"{source.name} {strength:g}"
            if args.tune:
                stored[key] = tune(examples, strength)
                STORED.write_text(json.dumps(stored, separators=(",", ":")) + "\n", "utf-8")
            if key not in stored:
                continue
            one = ours[key] = follow(examples, strength, None, sl.penalties.L1(strength))
            name, tuned = best(stored[key], "objective")
            family, last = best(stored[key], "final")
            lines.append(
                [
                    key,
                    f"{tuned.objective:.4f}/{tuned.loss:.4f}/{tuned.nonzero} {name}",
                    f"{one.objective:.4f}/{one.loss:.4f}/{one.nonzero}",
                    f"{stored[key]['batch']}",
                    f"{one.objective / tuned.objective:.3f}",
                    "" if np.isnan(last.final) else f"{last.final:.4f}/{last.nonzero} {family}",
                    f"{one.final:.4f}",
                    "" if np.isnan(last.final) else f"{one.final / last.final:.3f}",
                ]
            )
    print(table([*HEAD, *HEAD_FINAL], lines), "\n")
    if ours:
        summarize(ours, stored)
    if args.picture:
        draw(ours, stored, args.picture)


if __name__ == "__main__":
    main()
