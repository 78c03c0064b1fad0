"""The rules that the default under l1 is compared with, each over a grid of settings.

Every setting learns the rows in one pass. Its objective is the mean loss before learning plus the
mean penalty of the weights, read several times; its final objective is that of the last weights on
the same rows. A stored file has both, and the non-zero weights, for every setting.
"""

import importlib
import math
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from river import linear_model, optim

import streamlearn as sl
from benchmarks import peers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.data import Examples

READINGS = 200
PEER_READINGS = 10  # each costs a pass over the weights in Python, or a file
CONSTANT = 116060  # Vowpal Wabbit's name of the intercept


@dataclass(frozen=True)
class Result:
    """What a setting reached."""

    objective: float
    loss: float
    nonzero: int
    final: float = math.nan

    def stored(self) -> list[float]:
        """Return the numbers, rounded."""
        return [round(x, 5) for x in astuple(self)]


Run: TypeAlias = "Callable[[Examples, float], Result]"


def log_loss(scores: "NDArray[np.float64]", labels: "NDArray[np.float64]") -> float:
    """Return the mean of log(1 + exp(-y score))."""
    return float(np.logaddexp(0.0, -labels * scores).mean())


def result(
    examples: "Examples",
    strength: float,
    loss: float,
    norms: list[float],
    weights: "NDArray[np.float64]",
    intercept: float,
) -> Result:
    """Return the result of a pass whose weights had these l1 norms, and ended as given."""
    return Result(
        objective=loss + strength * float(np.mean(norms)),
        loss=loss,
        nonzero=int(np.count_nonzero(weights)),
        final=log_loss(np.asarray(examples.rows @ weights) + intercept, examples.labels)
        + strength * float(np.abs(weights).sum()),
    )


def follow(examples: "Examples", strength: float, rule: Any, penalty: Any) -> Result:
    """Learn with a rule of streamlearn."""
    rows, labels = examples.rows, examples.labels
    model = sl.LinearClassifier(rule, penalty=penalty)
    scores, norms = np.empty(len(labels)), []
    for part in np.array_split(np.arange(len(labels)), READINGS):
        part_rows = slice(part[0], part[-1] + 1)
        norms.append(float(np.abs(model.coef(rows.shape[1])).sum()))
        scores[part_rows] = model.progressive_rows(rows[part_rows], labels[part_rows])
    loss = log_loss(scores, labels)
    weights = model.coef(rows.shape[1])
    return result(examples, strength, loss, norms, weights, model.intercept)


def follow_river(examples: "Examples", strength: float, optimizer: Any, l1: float) -> Result:
    """Learn with river's logistic regression."""
    rows, labels = examples.rows, examples.labels
    model = linear_model.LogisticRegression(optimizer, l1=l1)
    scores, norms, ends = np.empty(len(labels)), [], rows.indptr.tolist()
    for i, label in enumerate(labels.tolist()):
        if i % (len(labels) // PEER_READINGS) == 0:
            norms.append(sum(map(abs, model.weights.values())))
        part = slice(ends[i], ends[i + 1])
        event = dict(zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True))
        share = min(max(model.predict_proba_one(event)[True], 1e-15), 1.0 - 1e-15)
        scores[i] = np.log(share / (1.0 - share))
        model.learn_one(event, label > 0)
    weights = np.zeros(rows.shape[1])
    for column, weight in model.weights.items():
        weights[column] = weight
    return result(
        examples, strength, log_loss(scores, labels), norms, weights, float(model.intercept)
    )


def follow_vw(examples: "Examples", strength: float, options: str) -> Result:
    """Learn with Vowpal Wabbit, whose saved weights are truncated."""
    module = importlib.import_module("vowpalwabbit")
    labels, every = examples.labels, -(-len(examples.labels) // PEER_READINGS)
    ends = range(0, len(labels), every)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rows.txt"
        peers.write_vw(examples.rows, labels, path)
        lines = path.read_text("ascii").splitlines(keepends=True)
        with path.open("w", encoding="ascii") as file:
            for k in ends:
                file.writelines(lines[k : k + every])
                file.write(f"'save_{directory}/{k} |\n")
        command = f"-d {path} --quiet -b 18 --loss_function logistic --predict_only_model {options}"
        workspace = cast("peers.Workspace", module.Workspace(f"{command} --l1 {strength:g}"))
        loss = workspace.get_sum_loss() / len(labels)
        workspace.finish()
        found = [saved_weights(Path(directory) / str(k)) for k in ends]
    size = examples.rows.shape[1]
    norms = [0.0, *[sum(abs(w) for j, w in one.items() if j != CONSTANT) for one in found[:-1]]]
    weights = np.array([found[-1].get(j, 0.0) for j in range(size)])
    return result(examples, strength, loss, norms, weights, found[-1].get(CONSTANT, 0.0))


def saved_weights(path: Path) -> dict[int, float]:
    """Return the weights of a saved model of Vowpal Wabbit."""
    module, text = importlib.import_module("vowpalwabbit"), path.with_suffix(".txt")
    module.Workspace(f"-i {path} --quiet -t --readable_model {text}").finish()
    pairs = re.findall(r"^(\d+):(\S+)$", text.read_text("ascii"), re.MULTILINE)
    return {int(name): float(weight) for name, weight in pairs}


def settings(strength: float, events: int) -> Iterator[tuple[str, str, Run]]:
    """Generate a family, a setting and its run for every setting of every baseline."""
    rules, l1 = sl.rules, sl.penalties.L1(strength)
    fixed = sl.penalties.L1(strength * events)

    def own(rule: Any, penalty: Any) -> tuple[str, str, Run]:
        return type(rule).__name__, repr(rule), partial(follow, rule=rule, penalty=penalty)

    for k in range(-6, 5):
        step = 2.0**k
        for rho in (0.0, 0.005):
            yield own(rules.DualAveraging(1.0 / step, rho), l1)
        yield own(rules.FTRLProximal(step), fixed)
        yield own(rules.AdaGrad(step), l1)
        yield own(rules.AdaGradDualAveraging(step), l1)
        yield own(rules.TruncatedGradient(rules.schedules.InverseSqrt(step)), l1)
    for rate in (0.1, 0.5, 2.0, 8.0):
        yield "Vowpal Wabbit --l1", f"-l {rate:g}", partial(follow_vw, options=f"-l {rate:g}")
    for rate in (0.03, 0.3):
        sgd = optim.SGD(rate)
        yield "river l1", f"SGD({rate:g})", partial(follow_river, optimizer=sgd, l1=strength)
        ftrl = optim.FTRLProximal(rate, l1=strength * events)
        name = f"FTRLProximal({rate:g})"
        yield "river FTRL", name, partial(follow_river, optimizer=ftrl, l1=0.0)


def tune(examples: "Examples", strength: float) -> dict[str, Any]:
    """Return the results of all settings, and the non-zero weights of the batch optimum."""
    found: dict[str, dict[str, list[float]]] = {}
    for family, name, run in settings(strength, len(examples.labels)):
        found.setdefault(family, {})[name] = run(examples, strength).stored()
    optimum = sl.hindsight.solve(
        examples.rows,
        examples.labels,
        sl.losses.Logistic(),
        sl.penalties.L1(strength),
        fit_intercept=True,
        gap=1e-4,
    )
    return {"settings": found, "batch": int(np.count_nonzero(optimum.w))}
