"""What shards have to agree on before they can be solved: labels, columns, and shares of the mean.

Each shard surveys its own rows. From all surveys follows the agreement of each shard: how it
numbers columns and encodes labels, and which share of the mean its rows have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.hindsight.labels import ordered_labels
from streamlearn.hindsight.problem import bound_loss, outputs_of
from streamlearn.hindsight.structured.multivariate.loss import MultivariateLoss

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.hindsight.methods import AnyLoss


@dataclass(frozen=True)
class Survey:
    """What a shard found in its rows.

    weight: their sum, or the number of groups. labels: the distinct ones, as seen. positive_seen:
    the values that count as positive, if they are declared. targets: the width of y if it has
    several. checksum: of the rows, which a rebuilt shard has to reproduce.
    """

    name: str
    rows: int
    columns: int
    weight: float
    labels: Sequence[Any]
    positive_seen: Sequence[Any]
    targets: int
    names: Sequence[Hashable] | None
    groups: frozenset[Any] | None
    types: Mapping[str, str]
    buckets: Mapping[str, Any]
    invalid: int
    examples: Sequence[str]
    checksum: int


@dataclass(frozen=True)
class Agreement:
    """How a shard takes part.

    loss: with the costs of the labels. columns: of all shards. places: the number of each of the
    shard's columns; None: its own. share: of all rows or groups.
    """

    loss: AnyLoss
    labels: list[Any]
    outputs: int
    columns: int
    places: Array | None
    share: float
    fit_intercept: bool
    checksum: int


@dataclass(frozen=True)
class Agreements:
    """The agreements of the shards that have rows, which are at `used`."""

    each: list[Agreement]
    used: list[int]
    names: list[Hashable] | None

    @property
    def common(self) -> Agreement:
        """An agreement whose labels, outputs and columns are those of all."""
        return self.each[0]


def agree(surveys: Sequence[Survey], loss: AnyLoss, *, fit_intercept: bool) -> Agreements:
    """Return the agreements of the shards that have rows."""
    used = [i for i, survey in enumerate(surveys) if survey.rows]
    if not used:
        where = ", ".join(one.name for one in surveys)
        raise ValueError(f"{where}: no row has a label; name its field (Fields.label, --label)")
    found = [surveys[i] for i in used]
    require_same_types(found)
    require_same_buckets(found)
    require_own_groups(found, loss)
    labels = merged_labels(found, loss)
    if isinstance(loss, MultivariateLoss):
        outputs = loss.outputs
    else:
        loss = bound_loss(loss, labels)
        outputs = outputs_of(loss, labels, found[0].targets)
    names, places = merged_columns(found)
    columns = max(one.columns for one in found) if names is None else len(names)
    total = sum(one.weight for one in found)
    if not total > 0.0:
        raise ValueError("weights are all 0; give at least one row a weight > 0")
    each = [
        Agreement(
            loss,
            labels,
            outputs,
            max(columns, 1),
            place,
            one.weight / total,
            fit_intercept,
            one.checksum,
        )
        for one, place in zip(found, places, strict=True)
    ]
    return Agreements(each, used, names)


def require_same_types(surveys: Sequence[Survey]) -> None:
    """Raise ValueError if a column is text in one shard and a number in another."""
    first: dict[str, tuple[str, str]] = {}
    for one in surveys:
        for column, kind in one.types.items():
            known, where = first.setdefault(column, (kind, one.name))
            if known != kind:
                raise ValueError(
                    f"column {column!r} has {known} in {where}, but {kind} in {one.name}; "
                    "declare what it is (features.fields, --field)"
                )


def require_same_buckets(surveys: Sequence[Survey]) -> None:
    """Raise ValueError if the values of shards led to different boundaries of a field."""
    first: dict[str, tuple[Any, str]] = {}
    for one in surveys:
        for name, edges in one.buckets.items():
            known, where = first.setdefault(name, (edges, one.name))
            if known != edges:
                raise ValueError(
                    f"field {name!r} has other buckets in {one.name} than in {where}; declare "
                    "their boundaries, buckets(0, 10, 100), or use one shard"
                )


def require_own_groups(surveys: Sequence[Survey], loss: AnyLoss) -> None:
    """Raise ValueError if a loss needs rows of several shards together."""
    if len(surveys) == 1 or not isinstance(loss, MultivariateLoss) or loss.row_mean:
        return
    where: dict[Any, int] = {}
    for i, one in enumerate(surveys):
        if one.groups is None:
            raise ValueError(
                f"{loss!r} is a loss of all rows together; use one shard (--shards 1), or a loss "
                "with groups and give them (--group)"
            )
        for group in one.groups:
            other = where.setdefault(group, i)
            if other != i:
                shown = group.decode() if isinstance(group, bytes) else group
                raise ValueError(
                    f"group {shown!r} is in {surveys[other].name} and in {one.name}; put its rows "
                    "into one file"
                )


def merged_labels(surveys: Sequence[Survey], loss: AnyLoss) -> list[Any]:
    """Return the labels of all shards in the order of the outputs, the positive one of two last."""
    known = list(dict.fromkeys(label for one in surveys for label in one.labels))
    if isinstance(loss, MultivariateLoss):
        return sorted(known) if loss.kind == "binary" else loss.labels
    return ordered_labels(known, loss)


def merged_columns(
    surveys: Sequence[Survey],
) -> tuple[list[Hashable] | None, list[Array | None]]:
    """Return the names of all columns, and where each shard's columns are among them."""
    if any(one.names is None for one in surveys):
        return None, [None] * len(surveys)
    places: dict[Hashable, int] = {}
    found: list[Array | None] = [
        np.array([places.setdefault(name, len(places)) for name in one.names or ()], dtype=np.int32)
        for one in surveys
    ]
    return list(places), found
