"""Labels encoded for the losses: -1 and +1, the index of a class, or numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core.labels import is_positive_alone, positive_last
from streamlearn.estimators import frames
from streamlearn.losses import Loss, VectorLoss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.core.arrays import Array


def encoded_labels(y: Any, m: int, loss: Loss | VectorLoss) -> tuple[Array, list[Any]]:
    """Encode the labels of m rows as float64; return the codes and the labels of the outputs."""
    known = ordered_labels(distinct_labels(y, m, loss), loss)
    return encoded(y, m, loss, known), known


def distinct_labels(y: Any, m: int, loss: Loss | VectorLoss) -> list[Any]:
    """Return the labels of m rows, each once; none if they are numbers to predict."""
    if loss.kind in ("regression", "multitarget"):
        _numeric_labels(y, m, loss)
        return []
    each = frames.label_array(y, m).tolist()
    known = frames.distinct(each)
    if any(map(frames.is_missing, known)):
        row = next(i for i, label in enumerate(each) if frames.is_missing(label))
        raise ValueError(f"row {row}: {each[row]!r} is not a label; leave the row out")
    return known


def ordered_labels(known: list[Any], loss: Loss | VectorLoss) -> list[Any]:
    """Return distinct labels in the order of the outputs.

    Of two classes the greater is the positive one if they are numbers or bools, or texts that
    write them, otherwise the one seen second. Several classes are in ascending order if they are
    numbers, otherwise as seen.
    """
    if loss.kind in ("regression", "multitarget"):
        return []
    if all(isinstance(label, bool | int | float) for label in known):
        known = sorted(known)
    known = positive_last(known)
    if isinstance(loss, VectorLoss):
        return _ordered_classes(known, loss)
    if loss.kind != "one-class" and len(known) > 2:
        raise ValueError(
            f"y has {len(known)} classes {', '.join(map(repr, known[:4]))}..., but {loss!r} "
            "supports two; use Softmax or MulticlassHinge, or solve for each class with "
            "y == label"
        )
    return known


def encoded(y: Any, m: int, loss: Loss | VectorLoss, known: list[Any]) -> Array:
    """Return the codes of m labels that are among the known ones."""
    if loss.kind in ("regression", "multitarget"):
        return _numeric_labels(y, m, loss)
    codes = codes_of(known, loss)
    return np.array([codes[label] for label in frames.label_array(y, m).tolist()], dtype=float)


def codes_of(known: Sequence[Any], loss: Loss | VectorLoss) -> dict[Any, float]:
    """Return the codes of labels in the order of the outputs; there may be one of two classes."""
    if isinstance(loss, VectorLoss):
        return {label: float(k) for k, label in enumerate(known)}
    if loss.kind == "one-class":
        return dict.fromkeys(known, 1.0)
    if len(known) == 1:
        (alone,) = known
        return {alone: 1.0 if is_positive_alone(alone) else -1.0}
    return dict(zip(known, (-1.0, 1.0), strict=True))


def _ordered_classes(known: list[Any], loss: VectorLoss) -> list[Any]:
    """Return the classes in the order of the outputs; those of a cost matrix are 0 to k - 1."""
    if not loss.outputs:
        return known
    for label in known:
        if label not in range(loss.outputs):
            raise ValueError(
                f"label {label!r}: {loss!r} has costs for the labels 0 to {loss.outputs - 1}; "
                "for other labels give the costs as a mapping from labels"
            )
    return list(range(loss.outputs))


def _numeric_labels(y: Any, m: int, loss: Loss | VectorLoss) -> Array:
    """Check the labels of a regression: one per row, or one per row and target."""
    try:
        values: Array = np.ascontiguousarray(y, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"the labels of {loss!r} must be numbers") from None
    wanted = 2 if loss.kind == "multitarget" else 1
    if values.ndim != wanted or len(values) != m:
        each = "a row of targets" if wanted == 2 else "one label"
        raise ValueError(f"y must have {each} for each of {m} rows, got shape {values.shape}")
    if isinstance(loss, VectorLoss) and loss.outputs not in {0, values.shape[1]}:
        raise ValueError(f"{loss!r} has {loss.outputs} targets, y has {values.shape[1]}")
    good = np.isfinite(values).reshape(m, -1).all(axis=1)
    if good.all() and isinstance(loss, Loss) and not loss.score_is_label:
        good = np.array([loss.is_label(label) for label in values.tolist()], dtype=bool)
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(f"row {row}: {values[row]} is not a label for {loss!r}; leave the row out")
    return values
