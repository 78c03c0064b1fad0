"""The models that the tables [[learner]] describe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from streamlearn.config.checks import declared, positives, written
from streamlearn.config.expressions import parse
from streamlearn.config.problems import ConfigProblem
from streamlearn.config.structs import (
    OPEN,
    Config,
    FeaturesConfig,
    FormatConfig,
    Label,
    LabelsConfig,
    LearnerConfig,
    PredictionsConfig,
    Source,
    SyntheticSourceConfig,
)
from streamlearn.errors import IncompatibleError
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.estimators.regressor import LinearRegressor
from streamlearn.features import Hashing, Names, Reader
from streamlearn.losses.loss import AnyLoss
from streamlearn.penalties import Penalty
from streamlearn.rules import Rule
from streamlearn.stream import Fields

if TYPE_CHECKING:
    from streamlearn.estimators.linear import Linear

Found = Iterator[ConfigProblem]
KINDS: dict[str, type[LinearClassifier | LinearRegressor]] = {
    "classification": LinearClassifier,
    "regression": LinearRegressor,
}
FAMILIES: dict[str, type[Any]] = {"rule": Rule, "loss": AnyLoss, "penalty": Penalty}
DEFAULT = LearnerConfig(name="default")


# the label's field, which is known where events are made up
MADE_UP = {"clicks": "clicked", "spending": "spent", "spam": "label", "delayed": "clicked"}


def completed(config: Config) -> Config:
    """The configuration with the field of the label that a synthetic source has."""
    if not isinstance(config.source, SyntheticSourceConfig) or config.format.label is not None:
        return config
    named = replace(config.format, label=MADE_UP[config.source.stream])
    if config.source.stream == "delayed":
        named = replace(named, id="id", time="time")
    return replace(config, format=named)


def fields(format: FormatConfig) -> Fields:  # noqa: A002 - the table's name
    """Which fields of an event are what."""
    return Fields(
        label=format.label,
        positive=positives(format) or None,
        labels=declared(format) or None,
        warmup=None if format.labels == OPEN else format.label_warmup,
        max_classes=format.max_classes,
        weight=format.weight,
        id=format.id,
        time=format.time,
        time_unit=format.time_unit,
        include=format.include,
        exclude=format.exclude,
    )


def label_fields(format: FormatConfig, labels: LabelsConfig) -> tuple[Fields, Fields | None]:  # noqa: A002 - the table's name
    """The fields of events, and those of the records of their labels, if they are others."""
    both = fields(format)
    label = labels.label or both.label
    if labels.topic is None:
        return replace_fields(both, label=label), None
    hidden = () if both.label is None else (both.label,)
    events = replace_fields(
        both,
        label=None,
        positive=None,
        labels=None,
        warmup=None,
        max_classes=None,
        exclude=(*both.exclude, *hidden),
    )
    return events, Fields(
        label=label,
        positive=both.positive,
        labels=both.labels,
        warmup=both.warmup,
        max_classes=both.max_classes,
        id=labels.id or both.id,
        time=labels.time or both.time,
        time_unit=both.time_unit,
        include=(),
    )


def reader(features: FeaturesConfig, format: FormatConfig) -> Reader:  # noqa: A002 - the table's name
    """What turns names into slots, for all learners."""
    if features.kind == "hashing":
        return Hashing(features.bits, format.interactions)
    # fewer than a table takes are a problem of their own
    most = max(features.max_bytes, 10_000) if features.max_bytes else None
    bounds = (features.max_names, features.on_full, most)
    return Names(format.interactions, *bounds)


def estimator(learner: LearnerConfig, features: Reader, labels: Sequence[Label] = ()) -> Linear:
    """The fresh model that the table describes; ValueError if there is none."""
    kind = KINDS[learner.task]
    if learner.start is not None:
        return kind.load(learner.start)
    if learner.model is not None:
        model = parse(learner.model, kind)
        return model.clone({"features": features})
    texts = {name: getattr(learner, name) for name in FAMILIES}
    parts = {name: parse(text, FAMILIES[name]) for name, text in texts.items() if text is not None}
    if learner.class_weight:
        parts["class_weight"] = factors(learner.class_weight, labels)
    return kind(
        **parts,
        features=features,
        fit_intercept=learner.fit_intercept,
        average=learner.average,
        batch=learner.batch,
        seed=learner.seed,
    )


def factors(given: dict[str, float], labels: Sequence[Label]) -> dict[Label, float]:
    """Factors by label: a file's keys are text, labels may be numbers or true and false.

    >>> factors({"7": 2.0, "true": 3.0, "spam": 4.0}, ())
    {7: 2.0, True: 3.0, 'spam': 4.0}
    """
    texts = {written(label): label for label in labels}
    return {texts[key] if labels else literal(key): factor for key, factor in given.items()}


def literal(text: str) -> Label:
    """A label that is written as a key."""
    if text in {"true", "false"}:
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def names(
    learners: Sequence[LearnerConfig], predictions: PredictionsConfig, source: Source
) -> Found:
    """Names are unique, and the learner that predicts is one of them."""
    counts = Counter(learner.name for learner in learners)
    for i, learner in enumerate(learners):
        if counts[learner.name] > 1:
            yield ConfigProblem(
                f"learner[{i}].name", f"{learner.name!r} is taken; give each its own"
            )
        if learner.name == "best":
            yield ConfigProblem(f"learner[{i}].name", '"best" means the best of them; use another')
    wish = predictions.learner
    if wish not in {None, "best"} and wish not in counts:
        known = ", ".join([*counts, "best"])
        yield ConfigProblem("predictions.learner", f"there is no learner {wish!r}; valid: {known}")
    if wish == "best" and predictions.best is None:
        yield ConfigProblem("predictions.best.by", "missing; say what makes a learner the best")
    if wish != "best" and predictions.best is not None:
        yield ConfigProblem(
            "predictions.learner", 'give learner = "best", or leave out [predictions.best]'
        )
    tasks = {learner.task for learner in learners}
    if isinstance(source, SyntheticSourceConfig) and (source.stream == "spending") == (
        "classification" in tasks
    ):
        task = "regression" if source.stream == "spending" else "classification"
        yield ConfigProblem(
            "learner[0].task", f'the labels of {source.stream} need task = "{task}"'
        )
    if len(tasks) > 1:
        yield ConfigProblem("learner", "all learn the same labels; give all the same `task`")


def models(
    learners: Sequence[LearnerConfig],
    predictions: PredictionsConfig,
    features: FeaturesConfig,
    format: FormatConfig,  # noqa: A002 - the table's name
) -> Found:
    """Every model can be built, and what they are compared by is defined for all."""
    shared = reader(features, format)
    built: dict[int, Linear] = {}
    for i, learner in enumerate(learners):
        path = f"learner[{i}]"
        problems = [
            *exclusive(learner, path),
            *parts(learner, path),
            *classes(learner, format, path),
        ]
        yield from problems
        if problems:
            continue
        try:
            built[i] = model = estimator(learner, shared, declared(format))
            if isinstance(model, LinearClassifier) and format.positive is None:
                model.check_labels(declared(format))
        except ValueError as error:
            yield ConfigProblem(f"{path}.{at_fault(learner)}", str(error))
    best = predictions.best
    for i, model in built.items():
        reason = None if best is None else incomparable(best.by, model)
        if reason is not None:
            yield ConfigProblem("predictions.best.by", f"{learners[i].name!r} {reason}")


def corrections(
    learners: Sequence[LearnerConfig],
    labels: LabelsConfig | None,
    features: FeaturesConfig,
    format: FormatConfig,  # noqa: A002 - the table's name
) -> Found:
    """Rules out of which a slope can be taken."""
    if labels is None or not labels.corrections:
        return
    if labels.on_timeout == "drop":
        yield ConfigProblem("labels.corrections", "needs `on_timeout`, the label that is corrected")
    for learner in learners:
        try:
            estimator(learner, reader(features, format), declared(format)).check_corrections()
        except IncompatibleError as error:
            yield ConfigProblem("labels.corrections", f"{learner.name!r}: {error}")
        except ValueError:
            continue  # it cannot be built, which is said elsewhere


def at_fault(learner: LearnerConfig) -> str:
    """The key that a refusal is about, as far as one can see."""
    keys = ("start", "model", "rule", "loss", "penalty")
    return next((key for key in keys if getattr(learner, key) is not None), "name")


def exclusive(learner: LearnerConfig, path: str) -> Found:
    """A model is described in one of three ways."""
    fresh = LearnerConfig(name=learner.name, task=learner.task)
    described = [
        "rule",
        "loss",
        "penalty",
        "average",
        "batch",
        "fit_intercept",
        "class_weight",
        "seed",
    ]
    given = [name for name in described if getattr(learner, name) != getattr(fresh, name)]
    for whole in ("start", "model"):
        if getattr(learner, whole) is None:
            continue
        if whole == "start" and learner.model is not None:
            yield ConfigProblem(f"{path}.model", "the saved model of `start` says it; leave it out")
        for name in given:
            where = "the saved model" if whole == "start" else "the call"
            yield ConfigProblem(
                f"{path}.{name}", f"is a part of `{whole}`; say it in {where}, not beside it"
            )
        break
    if learner.start is not None and not Path(learner.start).is_file():
        yield ConfigProblem(f"{path}.start", f"there is no file {learner.start}")


def parts(learner: LearnerConfig, path: str) -> Found:
    """Each text is a call of the right family."""
    wanted = {**FAMILIES, "model": KINDS[learner.task]}
    for name, family in wanted.items():
        text = getattr(learner, name)
        if text is None:
            continue
        try:
            made = parse(text, family)
        except ValueError as error:
            yield ConfigProblem(f"{path}.{name}", str(error))
            continue
        if name == "model" and getattr(made, "features", None) is not None:
            yield ConfigProblem(
                f"{path}.model", "features are shared by all learners; see [features]"
            )


def classes(learner: LearnerConfig, format: FormatConfig, path: str) -> Found:  # noqa: A002 - the table's name
    """Labels that are classes, and labels that are numbers."""
    if learner.task == "regression":
        if learner.class_weight:
            yield ConfigProblem(f"{path}.class_weight", 'needs task = "classification"')
        if format.positive is not None or format.labels:
            key = "labels" if format.labels else "positive"
            yield ConfigProblem(f"format.{key}", f"{learner.name!r} learns numbers; leave it out")
    known = set(map(written, declared(format)))
    for name in learner.class_weight:
        if known and name not in known:
            yield ConfigProblem(f"{path}.class_weight.{name}", "is not among format.labels")


def incomparable(by: str, model: Linear) -> str | None:
    """Why a model has no such score; None if it has."""
    if isinstance(model, LinearRegressor):
        return None if by in {"squared", "absolute"} else f"is a regression; {by} needs classes"
    if by in {"squared", "absolute"}:
        return f"is a classification; {by} needs numbers"
    loss: Any = model.objective.loss
    if by == "log_loss" and not loss.has_probability:
        return f'has no probability with {loss!r}; use by = "error", or a logistic loss'
    return None


CHECKS: tuple[Callable[..., Found], ...] = (names, models, corrections)
