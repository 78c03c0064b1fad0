"""The models that the [[learner]] tables describe, and their checks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from streamlearn.config import effective
from streamlearn.config.checks.features import field_problem
from streamlearn.config.checks.formats import declared_labels, positive_labels
from streamlearn.config.expressions import parse
from streamlearn.config.problems import ConfigProblem
from streamlearn.config.structs import (
    OPEN_LABELS,
    Config,
    FeaturesConfig,
    FormatConfig,
    Label,
    LabelsConfig,
    LearnerConfig,
    PredictionsConfig,
    ServeConfig,
    Source,
    SyntheticSourceConfig,
)
from streamlearn.core.labels import label_text
from streamlearn.errors import IncompatibleError
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.estimators.regressor import LinearRegressor
from streamlearn.features import Hashing, Names, Reader
from streamlearn.late.corrections import check_corrections
from streamlearn.losses.loss import AnyLoss
from streamlearn.penalties import Penalty
from streamlearn.rules import Rule
from streamlearn.stream import Fields

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamlearn.config.checks.values import Problems
    from streamlearn.estimators.linear import Linear

ESTIMATORS: dict[str, type[LinearClassifier | LinearRegressor]] = {
    "classification": LinearClassifier,
    "regression": LinearRegressor,
}
PARTS = (
    "rule",
    "loss",
    "penalty",
    "average",
    "batch",
    "fit_intercept",
    "class_weight",
    "calibrated",
    "seed",
)
FAMILIES: dict[str, type[Any]] = {"rule": Rule, "loss": AnyLoss, "penalty": Penalty}
DEFAULT = LearnerConfig(name="default")
# the label field of each synthetic stream
SYNTHETIC_LABELS = {"clicks": "clicked", "spending": "spent", "spam": "label", "delayed": "clicked"}


def with_synthetic_fields(config: Config) -> Config:
    """Set the fields of [format] that a synthetic source determines."""
    if not isinstance(config.source, SyntheticSourceConfig) or config.format.label is not None:
        return config
    named = replace(config.format, label=SYNTHETIC_LABELS[config.source.stream])
    if config.source.stream == "delayed":
        named = replace(named, id="id", time="time")
    return replace(config, format=named)


def event_fields(format: FormatConfig) -> Fields:  # noqa: A002 - the table's name
    """Return the role of each field of an event."""
    return Fields(
        label=format.label,
        positive=positive_labels(format) or None,
        labels=declared_labels(format) or None,
        warmup=None if format.labels == OPEN_LABELS else format.label_warmup,
        max_classes=format.max_classes,
        weight=format.weight,
        kept=format.kept,
        id=format.id,
        time=format.time,
        time_unit=format.time_unit,
        root=format.root,
        cloudevents=format.cloudevents,
    )


def label_fields(format: FormatConfig, labels: LabelsConfig) -> tuple[Fields, Fields | None]:  # noqa: A002 - the table's name
    """Return the fields of events, and those of label records if these are separate."""
    fields = event_fields(format)
    label = labels.label or fields.label
    if labels.topic is None:
        return replace_fields(fields, label=label), None
    events = replace_fields(
        fields,
        label=None,
        positive=None,
        labels=None,
        warmup=None,
        max_classes=None,
        ignored=() if fields.label is None else (fields.label,),
    )
    return events, Fields(
        label=label,
        positive=fields.positive,
        labels=fields.labels,
        warmup=fields.warmup,
        max_classes=fields.max_classes,
        id=labels.id or fields.id,
        time=labels.time or fields.time,
        time_unit=fields.time_unit,
        root=fields.root,
        cloudevents=fields.cloudevents,
    )


def feature_reader(features: FeaturesConfig) -> Reader:
    """Return the feature reader that all learners share."""
    fields = {name: text for name, text in features.fields.items() if not field_problem(name, text)}
    if features.kind == "hashing":
        return Hashing(features.bits, fields)
    # invalid fields and a smaller limit are reported by checks, which must not fail here
    max_bytes = max(features.max_bytes, 10_000) if features.max_bytes else None
    return Names(fields, features.max_names, features.on_full, max_bytes)


def estimator(learner: LearnerConfig, features: Reader, labels: Sequence[Label] = ()) -> Linear:
    """Return a new model as the table describes it; raise ValueError if it cannot be built."""
    kind = ESTIMATORS[learner.task]
    if learner.start is not None:
        return kind.load(learner.start)
    if learner.model is not None:
        model = parse(learner.model, kind)
        return model.clone({"features": features})
    texts = {name: getattr(learner, name) for name in FAMILIES}
    parts = {name: parse(text, FAMILIES[name]) for name, text in texts.items() if text is not None}
    if learner.class_weight:
        parts["class_weight"] = class_weights(learner.class_weight, labels)
    if learner.calibrated:
        parts["calibrated"] = True
    return kind(
        **parts,
        features=features,
        fit_intercept=learner.fit_intercept,
        average=learner.average,
        batch=learner.batch,
        seed=learner.seed,
    )


def class_weights(given: dict[str, float], labels: Sequence[Label]) -> dict[Label, float]:
    """Return weights by label: TOML keys are text, but labels may be numbers or booleans.

    >>> class_weights({"7": 2.0, "true": 3.0, "spam": 4.0}, ())
    {7: 2.0, True: 3.0, 'spam': 4.0}
    """
    texts = {label_text(label): label for label in labels}
    return {texts[key] if labels else label_of(key): weight for key, weight in given.items()}


def label_of(text: str) -> Label:
    """Return the label that a key stands for."""
    if text in {"true", "false"}:
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def names(learners: Sequence[LearnerConfig], predictions: PredictionsConfig) -> Problems:
    """Check that names are unique, and that the learner that predicts exists."""
    counts = Counter(learner.name for learner in learners)
    for i, learner in enumerate(learners):
        if counts[learner.name] > 1:
            yield ConfigProblem(
                f"learner[{i}].name", f"duplicate name {learner.name!r}; names must be unique"
            )
        if learner.name == "best":
            yield ConfigProblem(f"learner[{i}].name", '"best" is reserved; use another name')
    chosen = predictions.learner
    if chosen not in {None, "best"} and chosen not in counts:
        known = ", ".join([*counts, "best"])
        yield ConfigProblem("predictions.learner", f"no learner {chosen!r}; valid: {known}")
    if chosen == "best" and predictions.best is None:
        yield ConfigProblem("predictions.best.by", 'missing; learner = "best" requires it')
    if chosen != "best" and predictions.best is not None:
        yield ConfigProblem("predictions.learner", '[predictions.best] requires learner = "best"')


def served(learners: Sequence[LearnerConfig], serve: ServeConfig | None) -> Problems:
    """Check the names of the learners that are served."""
    if serve is None:
        return
    known = [learner.name for learner in learners or (DEFAULT,)]
    for i, name in enumerate(serve.learners):
        if name not in known:
            yield ConfigProblem(
                f"serve.learners[{i}]", f"no learner {name!r}; valid: {', '.join(known)}"
            )
    chosen = serve.learner
    if chosen is not None and chosen not in (serve.learners or known):
        yield ConfigProblem(
            "serve.learner",
            f"no learner {chosen!r} is served; valid: {', '.join(serve.learners or known)}",
        )
    for name in () if serve.split is None else serve.split.arms:
        if name not in (serve.learners or known):
            yield ConfigProblem(
                f"serve.split.arms.{name}",
                f"no learner {name!r} is served; valid: {', '.join(serve.learners or known)}",
            )


def tasks(learners: Sequence[LearnerConfig], source: Source) -> Problems:
    """Check that all learners have the same task, the one that the labels are for."""
    given = {learner.task for learner in learners}
    if isinstance(source, SyntheticSourceConfig):
        task = "regression" if source.stream == "spending" else "classification"
        if (task == "regression") == ("classification" in given):
            yield ConfigProblem(
                "learner[0].task", f'the labels of {source.stream} require task = "{task}"'
            )
    if len(given) > 1:
        yield ConfigProblem("learner", "all learners must have the same `task`")


def models(
    learners: Sequence[LearnerConfig],
    predictions: PredictionsConfig,
    features: FeaturesConfig,
    format: FormatConfig,  # noqa: A002 - the table's name
) -> Problems:
    """Check that every model can be built and has the score that models are compared by."""
    shared = feature_reader(features)
    built: dict[int, Linear] = {}
    for i, learner in enumerate(learners):
        path = f"learner[{i}]"
        problems = [
            *exclusive_keys(learner, path),
            *expressions(learner, path),
            *label_keys(learner, format, path),
            *random_keys(learner, path),
        ]
        yield from problems
        if problems:
            continue
        try:
            built[i] = model = estimator(learner, shared, declared_labels(format))
            if isinstance(model, LinearClassifier) and format.positive is None:
                model.check_labels(declared_labels(format))
            if learner.start is not None:
                share_saved(model, shared)
        except ValueError as error:
            yield ConfigProblem(f"{path}.{key_at_fault(learner)}", str(error))
    best = predictions.best
    for i, model in built.items():
        reason = None if best is None else incomparable(best.by, model)
        if reason is not None:
            yield ConfigProblem("predictions.best.by", f"{learners[i].name!r} {reason}")


def share_saved(model: Linear, shared: Reader) -> None:
    """Let a saved model use the shared features; ValueError if it has learned others."""
    own = model.reader
    if type(own) is type(shared) and own.fields != shared.fields:
        declared = own.fields.texts.items()
        texts = [f"{effective.key(name)} = {effective.toml(text)}" for name, text in declared]
        listed = ", ".join(texts) or "none"
        raise ValueError(f"[features.fields] must be as the model has learned: {listed}")
    model.share_features(shared)


def corrections(
    learners: Sequence[LearnerConfig],
    labels: LabelsConfig | None,
    features: FeaturesConfig,
    format: FormatConfig,  # noqa: A002 - the table's name
) -> Problems:
    """Check that the rule of every learner supports corrections."""
    if labels is None or not labels.corrections:
        return
    if labels.on_timeout == "drop":
        yield ConfigProblem("labels.corrections", "requires `on_timeout`, the label to correct")
    for learner in learners:
        try:
            reader, declared = feature_reader(features), declared_labels(format)
            check_corrections(estimator(learner, reader, declared))
        except IncompatibleError as error:
            yield ConfigProblem("labels.corrections", f"{learner.name!r}: {error}")
        except ValueError:
            continue  # `models` reports that it cannot be built


def key_at_fault(learner: LearnerConfig) -> str:
    """Return the key that an error is most likely about."""
    keys = ("start", "model", "rule", "loss", "penalty")
    return next((key for key in keys if getattr(learner, key) is not None), "name")


def exclusive_keys(learner: LearnerConfig, path: str) -> Problems:
    """Check that a model is described in one way: by its parts, a preset or a saved model."""
    default = LearnerConfig(name=learner.name, task=learner.task)
    whole = "model" if learner.start is None else "start"
    if getattr(learner, whole) is not None:
        parts = [name for name in PARTS if getattr(learner, name) != getattr(default, name)]
        if whole == "start" and learner.model is not None:
            parts = ["model", *parts]
        for name in parts:
            yield ConfigProblem(f"{path}.{name}", f"cannot be combined with `{whole}`; remove it")
    if learner.start is not None and not Path(learner.start).is_file():
        yield ConfigProblem(f"{path}.start", f"no such file: {learner.start}")


def random_keys(learner: LearnerConfig, path: str) -> Problems:
    """Check that a seed is of something random."""
    described = learner.model is None and learner.start is None
    if learner.seed is not None and learner.average != "random" and described:
        yield ConfigProblem(f"{path}.seed", 'requires average = "random"')


def expressions(learner: LearnerConfig, path: str) -> Problems:
    """Check that each text is a call of the expected kind."""
    families = {**FAMILIES, "model": ESTIMATORS[learner.task]}
    for name, family in families.items():
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
                f"{path}.model", "features are shared by all learners; set them in [features]"
            )


def label_keys(learner: LearnerConfig, format: FormatConfig, path: str) -> Problems:  # noqa: A002 - the table's name
    """Check that the keys about labels match the task."""
    if learner.task == "regression":
        if learner.class_weight:
            yield ConfigProblem(f"{path}.class_weight", 'requires task = "classification"')
        if learner.calibrated:
            yield ConfigProblem(f"{path}.calibrated", 'requires task = "classification"')
        for key in ("kept", "label_warmup", "max_classes"):
            if getattr(format, key) != getattr(FormatConfig(), key):
                yield ConfigProblem(f"format.{key}", 'requires task = "classification"')
        if format.positive is not None or format.labels:
            key = "labels" if format.labels else "positive"
            yield ConfigProblem(
                f"format.{key}",
                f"{learner.name!r} is a regression, whose labels are numbers; remove it",
            )
    known = set(map(label_text, declared_labels(format)))
    for name in learner.class_weight:
        if known and name not in known:
            yield ConfigProblem(f"{path}.class_weight.{name}", "not in format.labels")


def incomparable(by: str, model: Linear) -> str | None:
    """Return why a model does not have this score; None if it has."""
    if isinstance(model, LinearRegressor):
        return None if by in {"squared", "absolute"} else f"is a regression; {by} requires classes"
    if by in {"squared", "absolute"}:
        return f"is a classification; {by} requires numbers"
    loss: Any = model.objective.loss
    if by == "log_loss" and not loss.has_probability:
        return f'predicts no probabilities with {loss!r}; use by = "error" or a logistic loss'
    return None


CHECKS: tuple[Callable[..., Problems], ...] = (names, served, tasks, models, corrections)
