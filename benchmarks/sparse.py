"""Compare the default rule under l1 with rules whose step is tuned in hindsight.

python -m benchmarks.sparse [--data DIR] [--only NAME ...] [--tune]

One pass over the first 50,000 rows. The objective is the mean loss before learning plus the mean
penalty, read 200 times. The best setting of each tuned rule comes from sparse_baselines.json, which
--tune remakes; the non-zero weights of the batch optimum too.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import streamlearn as sl
from benchmarks import data
from benchmarks.report import table

if TYPE_CHECKING:
    from benchmarks.data import Examples

ROWS = 50_000
READINGS = 200
STRENGTHS = (1e-2, 1e-3, 1e-4, 1e-5)
STORED = Path(__file__).with_name("sparse_baselines.json")


def settings(strength: float, events: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield a name, a rule and its penalty for every setting of every baseline."""
    rules, l1 = sl.rules, sl.penalties.L1(strength)
    steps = sl.rules.schedules.InverseSqrt
    for k in range(-6, 5):
        step = 2.0**k
        for rho in (0.0, 0.005):
            yield "DualAveraging", rules.DualAveraging(1.0 / step, rho), l1
        yield "FTRLProximal", rules.FTRLProximal(step), sl.penalties.L1(strength * events)
        yield "AdaGrad", rules.AdaGrad(step), l1
        yield "AdaGradDualAveraging", rules.AdaGradDualAveraging(step), l1
        yield "TruncatedGradient", rules.TruncatedGradient(steps(step)), l1


def follow(examples: "Examples", rule: Any, penalty: Any, strength: float) -> dict[str, float]:
    """Return the progressive objective and log-loss, and the number of non-zero weights."""
    rows, labels = examples.rows, examples.labels
    model = sl.LinearClassifier(rule, penalty=penalty)
    scores, penalties = np.empty(len(labels)), []
    for part in np.array_split(np.arange(len(labels)), READINGS):
        part_rows = slice(part[0], part[-1] + 1)
        penalties.append(strength * float(np.abs(model.coef(rows.shape[1])).sum()))
        scores[part_rows] = model.progressive_rows(rows[part_rows], labels[part_rows])
    loss = float(np.logaddexp(0.0, -labels * scores).mean())
    return {
        "objective": loss + float(np.mean(penalties)),
        "loss": loss,
        "nonzero": model.nonzero,
    }


def tune(examples: "Examples", strength: float) -> dict[str, Any]:
    """Return the best setting of each baseline, and the non-zero weights of the batch optimum."""
    best: dict[str, Any] = {}
    for name, rule, penalty in settings(strength, len(examples.labels)):
        found = {"rule": repr(rule), **follow(examples, rule, penalty, strength)}
        if name not in best or found["objective"] < best[name]["objective"]:
            best[name] = found
    optimum = sl.hindsight.solve(
        examples.rows,
        examples.labels,
        sl.losses.Logistic(),
        sl.penalties.L1(strength),
        fit_intercept=True,
        gap=1e-4,
    )
    return {"rules": best, "batch": int(np.count_nonzero(optimum.w))}


def main() -> None:
    """Print the table, and how often the default is as good as the best tuned rule."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse", description=__doc__)
    parser.add_argument("--data", type=Path, default=data.HOME, help="where the data sets are")
    parser.add_argument("--only", nargs="+", default=(), help="only these data sets")
    parser.add_argument("--tune", action="store_true", help="tune the baselines again")
    args = parser.parse_args()
    stored = json.loads(STORED.read_text("utf-8")) if STORED.exists() else {}
    lines, ratios, sizes = [], [], []
    for source in data.CLASSIFICATION:
        if (args.only and source.name not in args.only) or not (args.data / source.file).exists():
            continue
        examples = data.load(source, args.data, ROWS)
        for strength in STRENGTHS:
            key = f"{source.name} {strength:g}"
            if args.tune:
                stored[key] = tune(examples, strength)
                STORED.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
            if key not in stored:
                continue
            ours = follow(examples, None, sl.penalties.L1(strength), strength)
            name, best = min(stored[key]["rules"].items(), key=lambda one: one[1]["objective"])
            batch = stored[key]["batch"]
            ratios.append(ours["objective"] / best["objective"])
            sizes.append(ours["nonzero"] <= max(1.5 * batch, batch + 2))
            lines.append(
                [
                    key,
                    f"{best['objective']:.4f}/{best['loss']:.4f}/{best['nonzero']} {name}",
                    f"{ours['objective']:.4f}/{ours['loss']:.4f}/{ours['nonzero']}",
                    f"{batch}",
                    f"{ratios[-1]:.3f}",
                ]
            )
    head = ["set, l1", "best tuned rule", "the default", "batch non-zeros", "ratio"]
    print(table(head, lines), "\n")
    ratio = np.array(ratios)
    print(f"Within 1% of the best tuned rule on {np.sum(ratio <= 1.01)} of {len(ratio)} cases,")
    print(f"better on {np.sum(ratio < 1.0)}; geometric mean {np.exp(np.log(ratio).mean()):.3f}.")
    print(f"Non-zeros at most 1.5 times the batch optimum's, or 2 more, on {np.sum(sizes)}.")


if __name__ == "__main__":
    main()
