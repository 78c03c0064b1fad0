"""A model as a scikit-learn pipeline, which does not need streamlearn."""

from __future__ import annotations

import math
import re
from functools import partial
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import VotingRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from streamlearn.errors import IncompatibleError
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.export.fields import LearnedField, learned_fields, may_clip, parts_of_time
from streamlearn.export.score import outputs_of
from streamlearn.features import fields as kinds
from streamlearn.losses import Exponential, Logistic, VectorLoss

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.estimators.linear import Linear
    from streamlearn.export.score import MixtureTerm, Output

TARGET = "scikit-learn"
WORD = r"\w+"
INTEGER = re.compile(r"-?\d+")
PARTS = {"hour": "dt.hour", "weekday": "dt.day_of_week", "month": "dt.month"}
# What a time may be, and how it is read: a date, or a number of units since 1970.
DATE = r"^\s*(\d{4}-.*)$"
AMOUNT = r"^\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*$"


class Block:
    """A transformer of one column, and the weights of what it gives."""

    def __init__(self, field: LearnedField, step: Any, slots: Sequence[int], *, flat: bool) -> None:
        self.name = field.name
        self.step = step
        self.slots = list(slots)
        self.column: str | list[str] = field.name if flat else [field.name]  # a series or a frame
        self.center = 0.0  # of a number, which the intercept takes


def pipeline(model: Linear) -> Pipeline:
    """Return a pipeline that predicts the rows of a data frame whose columns are the fields.

    Scores are equal as long as no number is larger than those that the model has learned.

    >>> import streamlearn as sl
    >>> model = sl.PegasosClassifier(l2=0.1)
    >>> model.learn_one({"user": "ann", "price": 0.5}, True)
    >>> rows = pd.DataFrame({"user": ["ann", "bob"], "price": [0.5, 2.0]})
    >>> pipeline(model).predict(rows)
    array([ True,  True])
    """
    outputs = outputs_of(model)
    slots = sorted({slot for output in outputs for slot in output.used.tolist()})
    fields = learned_fields(model.reader, slots, TARGET)
    if not fields:
        raise IncompatibleError("the model has no non-zero weight, so there is nothing to export")
    blocks = [block for field in fields for block in blocks_of(field)]
    steps = [(f"{k} {one.name}", one.step, one.column) for k, one in enumerate(blocks)]
    columns = ColumnTransformer(steps, sparse_threshold=1.0)
    columns.fit(pd.DataFrame({one.name: pd.Series([None], dtype=object) for one in blocks}))
    width = sum(len(one.slots) for one in blocks)
    predictor: Any
    if isinstance(model, LinearClassifier):
        predictor = classifier(model, outputs, blocks, width)
    else:
        predictor = regressor(model, outputs, fields, blocks, width)
    return Pipeline([("fields", columns), ("model", predictor)])


def classifier(
    model: LinearClassifier, outputs: Sequence[Output], blocks: Sequence[Block], width: int
) -> Any:
    """Return a fitted classifier with the model's weights, and its probabilities."""
    labels = model.labels
    if len(labels) < 2:
        raise IncompatibleError(f"the model knows the labels {labels}; {TARGET} needs two")
    made: Any = LogisticRegression()
    if apart(model, len(outputs)):
        made = OneVsRestClassifier(LogisticRegression())
    order = np.argsort(np.array(labels)) if len(outputs) > 1 else np.arange(1)
    made.fit(nothing(len(labels), width), labels)
    scale = slope(model, len(outputs))
    if len(outputs) == 1 and made.classes_[1] != labels[1]:
        scale = -scale
    sums = [total(outputs[k].members, outputs[k].offset, blocks) for k in order]
    weights = [(scale * coefficients, scale * intercept) for coefficients, intercept in sums]
    if isinstance(made, OneVsRestClassifier):
        for one, (coefficients, intercept) in zip(made.estimators_, weights, strict=True):
            one.coef_, one.intercept_ = coefficients[None, :], np.array([intercept])
    else:
        if len(outputs) == 2:  # of two classes, scikit-learn has the difference
            weights = [(weights[1][0] - weights[0][0], weights[1][1] - weights[0][1])]
        made.coef_ = np.array([coefficients for coefficients, _ in weights])
        made.intercept_ = np.array([intercept for _, intercept in weights])
    return made


def apart(model: LinearClassifier, outputs: int) -> bool:
    """Return whether a class has its probability against the rest, divided by the sum of all."""
    loss = model.objective.loss
    return outputs > 1 and loss.has_probability and not isinstance(loss, Logistic | VectorLoss)


def slope(model: LinearClassifier, outputs: int) -> float:
    """Return the factor of scores with which scikit-learn gives the model's probabilities."""
    loss = model.objective.loss
    if isinstance(loss, Exponential):
        return 2.0  # the score is half the log-odds
    if outputs == 1 or isinstance(loss, VectorLoss) or apart(model, outputs):
        return 1.0
    return 1.0 - 1.0 / outputs  # as the model does before its softmax


def regressor(
    model: Linear,
    outputs: Sequence[Output],
    fields: Sequence[LearnedField],
    blocks: Sequence[Block],
    width: int,
) -> Any:
    """Return a fitted regressor with the model's weights: a vote of members if they are clipped."""
    loss = model.objective.loss
    if not loss.score_is_label:
        raise IncompatibleError(
            f"the predictions of {loss!r} are no scores; export to json or sql, and apply its "
            "response to the score"
        )
    if len(outputs) > 1 or not any(may_clip(one, fields) for one in outputs[0].members):
        linear = LinearRegression().fit(nothing(2, width), np.zeros((2, len(outputs))))
        sums = [total(one.members, one.offset, blocks) for one in outputs]
        linear.coef_ = np.array([coefficients for coefficients, _ in sums])
        linear.intercept_ = np.array([intercept for _, intercept in sums])
        if len(outputs) == 1:
            linear.coef_, linear.intercept_ = linear.coef_[0], float(linear.intercept_[0])
        return linear
    (output,) = outputs
    clipped = [
        (
            str(k),
            TransformedTargetRegressor(
                LinearRegression(),
                func=np.asarray,
                inverse_func=partial(np.clip, a_min=one.low, a_max=one.high),
                check_inverse=False,
            ),
        )
        for k, one in enumerate(output.members)
    ]
    shares = [one.share for one in output.members]
    voters = VotingRegressor(clipped, weights=shares).fit(nothing(2, width), np.zeros(2))
    for voter, one in zip(voters.estimators_, output.members, strict=True):
        found = total([one], output.offset, blocks, share=1.0)
        voter.regressor_.coef_, voter.regressor_.intercept_ = found
    return voters


def nothing(rows: int, width: int) -> Any:
    """Return a matrix of zeros, to which models are fitted before they get their weights."""
    return scipy.sparse.csr_matrix((rows, width))


def total(
    members: Sequence[MixtureTerm],
    offset: float,
    blocks: Sequence[Block],
    share: float | None = None,
) -> tuple[Array, float]:
    """Return the weights of what all blocks give, and the intercept."""
    slots = np.array([slot for block in blocks for slot in block.slots])
    centers = np.array([block.center for block in blocks for _ in block.slots])
    weights, intercept = np.zeros(len(slots)), offset
    for one in members:
        part = one.share if share is None else share
        weights += part * one.weights[slots]
        intercept += part * one.intercept
    return weights, float(intercept - np.dot(centers, weights))


def blocks_of(field: LearnedField) -> Iterator[Block]:
    """Yield the transformers of a field."""
    kind = field.kind
    if isinstance(kind, kinds.Number) or "" in field.slots:
        yield from number_blocks(field)
    elif isinstance(kind, kinds.Auto | kinds.Category):
        yield category_block(field)
    elif isinstance(kind, kinds.Buckets):
        yield bucket_block(field)
    elif isinstance(kind, kinds.Time):
        instant = partial(pd.to_datetime, utc=True, errors="coerce")
        yield time_block(field, DATE, call(instant, format="ISO8601"))
        amount = make_pipeline(call(pd.to_numeric), call(instant, unit=kind.unit))
        yield time_block(field, AMOUNT, amount)
    elif isinstance(kind, kinds.List):
        pattern = f"[^{re.escape(kind.separator)}]+"
        yield token_block(
            field, CountVectorizer(token_pattern=pattern, lowercase=False, binary=True)
        )
    elif isinstance(kind, kinds.Text) and kind.chars is None and not kind.normalized:
        ngrams = (1, kind.ngrams)
        yield token_block(
            field, CountVectorizer(token_pattern=WORD, ngram_range=ngrams, binary=kind.binary)
        )
    else:
        raise refused(field)


def refused(field: LearnedField) -> IncompatibleError:
    """Return the error of a field that scikit-learn's own transformers cannot read."""
    return IncompatibleError(
        f"the field {field.name!r} is {str(field.kind)!r}, which cannot be exported to {TARGET}; "
        "export to json"
    )


def call(function: Any, **given: Any) -> FunctionTransformer:
    """Return a function as a transformer."""
    return FunctionTransformer(partial(function, **given))


def method(name: str, *given: Any, **named: Any) -> FunctionTransformer:
    """Return a method of a series, or a frame, as a transformer."""
    return FunctionTransformer(methodcaller(name, *given, **named))


def number_blocks(field: LearnedField) -> Iterator[Block]:
    """Yield a number, the indicator that it is missing, and the categories of other values."""
    kind, slots = field.kind, dict(field.slots)
    declared = kind if isinstance(kind, kinds.Number) else kinds.Number()
    read: list[Any] = [call(np.asarray, dtype=float)]
    if declared.invalid != "refuse":
        read = [
            call(pd.to_numeric, errors="coerce"),
            method("astype", float),  # integers, too: a missing value is none of them
            method("replace", [math.inf, -math.inf], math.nan),
            method("to_frame"),
        ]
    flat = len(read) > 1
    if (slot := slots.pop("", None)) is not None:
        steps = [*read]
        if declared.clip is not None:
            steps.append(call(np.clip, a_min=declared.clip[0], a_max=declared.clip[1]))
        if declared.log1p:
            steps.append(call(np.log1p))
        # a missing value adds nothing, as one at the center does
        steps.append(
            SimpleImputer(strategy="constant", fill_value=declared.center, keep_empty_features=True)
        )
        block = Block(field, make_pipeline(*steps), [slot], flat=flat)
        block.center = declared.center
        yield block
    if declared.indicator and (slot := slots.get("=missing")) is not None:
        if declared.invalid == "category":  # of the text "missing", too
            yield Block(
                field, make_pipeline(call(pd.isna), method("astype", float)), [slot], flat=False
            )
        else:
            del slots["=missing"]
            missing = make_pipeline(*read, MissingIndicator(features="all"))
            yield Block(field, missing, [slot], flat=flat)
    if slots:
        yield category_block(LearnedField(field.name, kinds.Category(), slots))


def category_block(field: LearnedField) -> Block:
    """Return the categories of a column as text, in all forms that mean the same."""
    found = {rest[1:]: slot for rest, slot in field.slots.items()}
    if isinstance(field.kind, kinds.Category):
        found |= {f"{name}.0": slot for name, slot in found.items() if INTEGER.fullmatch(name)}
        for name in ("true", "false"):
            if name in found:
                found |= {name.title(): found[name], name.upper(): found[name]}
    encoder = OneHotEncoder(categories=[list(found)], handle_unknown="ignore")
    steps = make_pipeline(call(np.asarray, dtype=str), encoder)
    return Block(field, steps, list(found.values()), flat=False)


def bucket_block(field: LearnedField) -> Block:
    """Return the interval of a number; an unknown or missing one is none."""
    ends = {}
    for rest, slot in field.slots.items():
        low, _, high = rest[2:-1].partition(",")
        ends[float(low), float(high)] = slot
    edges = sorted({edge for pair in ends for edge in pair} | {-math.inf, math.inf})
    found = {edges.index(low) + 1: slot for (low, _), slot in sorted(ends.items())}
    encoder = OneHotEncoder(categories=[list(found)], handle_unknown="ignore")
    place = call(np.digitize, bins=edges)
    steps = make_pipeline(call(np.asarray, dtype=float), place, encoder)
    return Block(field, steps, list(found.values()), flat=False)


def time_block(field: LearnedField, pattern: str, read: Any) -> Block:
    """Return the parts of the times that match a pattern."""
    kind = field.kind
    parts = parts_of_time(field, TARGET)
    steps = [
        make_pipeline(
            FunctionTransformer(attrgetter(PARTS[part])),
            method("astype", float),
            method("to_frame"),
            OneHotEncoder(categories=[[float(n) for n in sorted(slots)]], handle_unknown="ignore"),
        )
        for part, slots in parts.items()
    ]
    zone = kind.zone if isinstance(kind, kinds.Time) else ""
    whole = make_pipeline(
        method("astype", str),
        FunctionTransformer(attrgetter("str")),
        method("extract", pattern, expand=False),
        read,
        FunctionTransformer(attrgetter("dt")),
        method("tz_convert", zone),
        make_union(*steps),
    )
    slots = [slot for found in parts.values() for _, slot in sorted(found.items())]
    return Block(field, whole, slots, flat=True)


def token_block(field: LearnedField, counts: CountVectorizer) -> Block:
    """Return the counts of the words, or the items, of a text."""
    words = [rest[1:] for rest in field.slots]
    counts.set_params(vocabulary={word: k for k, word in enumerate(words)})
    empty = [
        SimpleImputer(
            missing_values=missing, strategy="constant", fill_value="", keep_empty_features=True
        )
        for missing in (None, np.nan)
    ]
    steps = make_pipeline(call(np.asarray, dtype=object), *empty, call(np.ravel), counts)
    return Block(field, steps, list(field.slots.values()), flat=False)
