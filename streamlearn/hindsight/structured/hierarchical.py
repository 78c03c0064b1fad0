"""Losses of labels that are the leaves of a tree ([Teo07] section 3.2).

Every node has its own weights, and the score of a label is the sum of the scores on its path from
the root: labels share what their ancestors learn. One sweep down the tree gives the scores of all
leaves, one sweep up the slopes of all nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamlearn.hindsight.inner import inner
from streamlearn.hindsight.problem import normalized_weights
from streamlearn.hindsight.structured.multivariate.loss import MultivariateLoss

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.structured.multivariate.loss import Indices


class LabelTree:
    """A tree given by the parent of each node; nodes at the top have the parent None."""

    def __init__(self, parents: Mapping[Any, Any]) -> None:
        self.nodes: list[Hashable] = []
        waiting = dict(parents)
        for parent in waiting.values():
            if parent is not None and parent not in waiting:
                raise ValueError(f"parents: {parent!r} is not a node; add its own parent, or None")
        while waiting:
            ready = [n for n, p in waiting.items() if p is None or p not in waiting]
            if not ready:
                raise ValueError(f"parents: {next(iter(waiting))!r} is its own ancestor")
            self.nodes += ready
            for node in ready:
                del waiting[node]
        place = {node: k for k, node in enumerate(self.nodes)}
        self.parent = [-1 if (p := parents[n]) is None else place[p] for n in self.nodes]
        inner = set(self.parent)
        # a leaf's number is the position of its node
        self.leaves = np.array([k for k in range(len(self.nodes)) if k not in inner], dtype=np.intp)
        if len(self.leaves) < 2:
            raise ValueError(f"parents: the tree has {len(self.leaves)} leaves; it needs two")
        self.labels = {self.nodes[k]: i for i, k in enumerate(self.leaves.tolist())}

    def leaf_scores(self, scores: Vector) -> Vector:
        """Return the scores of the leaves: each node's own (the last axis) plus its ancestors'."""
        total = scores.copy()
        for node, parent in enumerate(self.parent):
            if parent >= 0:
                total[..., node] += total[..., parent]
        leaves: Vector = total[..., self.leaves]
        return leaves

    def node_slopes(self, slopes: Vector) -> Vector:
        """Return the slopes of the nodes: each the sum over the leaves below it."""
        total = np.zeros((*slopes.shape[:-1], len(self.nodes)))
        total[..., self.leaves] = slopes
        for node in reversed(range(len(self.parent))):
            if self.parent[node] >= 0:
                total[..., self.parent[node]] += total[..., node]
        return total

    def distances(self) -> Vector:
        """Return, for each pair of leaves, the number of edges up to their common ancestor."""
        paths = self.node_slopes(np.eye(len(self.leaves))).T > 0.0  # node x leaf: on the path
        depth = paths.sum(axis=0)
        shared = paths.T.astype(float) @ paths.astype(float)
        return np.asarray(np.maximum(depth[:, None], depth[None, :]) - shared, dtype=float)


class HierarchicalLoss(MultivariateLoss):
    """A loss of the scores of all nodes of a label tree, averaged over rows."""

    kind: ClassVar[str] = "multiclass"
    row_mean: ClassVar[bool] = True
    takes_groups: ClassVar[bool] = False
    tree: LabelTree
    parents: dict[Hashable, Hashable | None]

    @property
    def outputs(self) -> int:
        """The number of nodes."""
        return len(self.tree.nodes)

    @property
    def labels(self) -> list[Any]:
        """The nodes, in the order of the outputs."""
        return list(self.tree.nodes)

    def bind(self, y: Any, groups: Any = None, weights: Any = None) -> LabeledRows:
        """Bind the labels; the result is a loss of scores."""
        if groups is not None:
            raise ValueError(f"groups: {type(self).__name__} has no groups; leave groups out")
        labels = list(y)
        if not labels:
            raise ValueError("y is empty; give at least one row")
        for row, label in enumerate(labels):
            if label not in self.tree.labels:
                known = ", ".join(map(repr, list(self.tree.labels)[:4]))
                raise ValueError(f"row {row}: {label!r} is not a leaf of the tree ({known}, ...)")
        codes = np.array([self.tree.labels[label] for label in labels], dtype=np.intp)
        return LabeledRows(self, codes, normalized_weights(weights, len(codes)))

    def value(self, f: Any, y: Any, groups: Any = None) -> float:
        """Return the mean loss of the nodes' scores `f`, one row per label."""
        return self.bind(y, groups).value_and_slope(np.asarray(f, dtype=float))[0]

    def slope(self, f: Any, y: Any, groups: Any = None) -> Vector:
        """Return a subgradient with respect to `f`."""
        return self.bind(y, groups).value_and_slope(np.asarray(f, dtype=float))[1]

    def leaf_losses(self, f: Vector, y: Indices) -> tuple[Vector, Vector]:
        """Return the loss of each row's leaf scores, and its slope in them."""
        raise NotImplementedError


class HierarchicalMargin(HierarchicalLoss):
    """max over leaves y' of f_y' - f_y + Delta(y, y'): the margin between paths.

    parents: the parent of each node of the tree, None at the top; its leaves are the labels.
    cost: "tree", where Delta is the number of edges up to the common ancestor, or "error", where
    it is 1.

    >>> loss = HierarchicalMargin({"cat": "pet", "dog": "pet", "pet": None, "oak": None})
    >>> loss.labels
    ['pet', 'oak', 'cat', 'dog']
    >>> loss.value([[0.0, 0.0, 0.0, 0.0]], ["cat"])
    2.0
    """

    _names = ("parents", "cost")
    _examples = (
        ({"a": None, "b": None, "a1": "a", "a2": "a", "b1": "b"}, "tree"),
        ({0: None, 1: None, 2: None}, "error"),
    )

    def __init__(self, parents: Mapping[Any, Any], cost: str = "tree") -> None:
        self.parents = dict(parents)
        self.tree = LabelTree(self.parents)
        self.cost = cost
        if cost not in ("tree", "error"):
            raise ValueError(f'cost must be "tree" or "error", got {cost!r}')
        distances = self.tree.distances()
        self._delta = distances if cost == "tree" else np.minimum(distances, 1.0)

    def leaf_losses(self, f: Vector, y: Indices) -> tuple[Vector, Vector]:
        """Return the margin violations, and their slopes."""
        rows = np.arange(len(y))
        margins = f + self._delta[y]
        worst = margins.argmax(axis=1)
        slope = np.zeros_like(f)
        slope[rows, worst] += 1.0
        slope[rows, y] -= 1.0
        return margins[rows, worst] - f[rows, y], slope


class HierarchicalLogistic(HierarchicalLoss):
    """log sum over leaves y' of exp(f_y') - f_y: the softmax over paths.

    parents: the parent of each node of the tree, None at the top; its leaves are the labels.
    """

    _names = ("parents",)
    _examples = (
        ({"a": None, "b": None, "a1": "a", "a2": "a", "b1": "b"},),
        ({0: None, 1: None, 2: None},),
    )

    def __init__(self, parents: Mapping[Any, Any]) -> None:
        self.parents = dict(parents)
        self.tree = LabelTree(self.parents)

    def leaf_losses(self, f: Vector, y: Indices) -> tuple[Vector, Vector]:
        """Return minus the log-probability of the true path, and its slopes."""
        rows = np.arange(len(y))
        top = f.max(axis=1)
        exponentials = np.exp(f - top[:, None])
        total = exponentials.sum(axis=1)
        slope = exponentials / total[:, None]
        slope[rows, y] -= 1.0
        return np.log(total) + top - f[rows, y], slope


class LabeledRows:
    """The weighted mean of a hierarchical loss over rows."""

    def __init__(self, loss: HierarchicalLoss, y: Indices, weights: Vector) -> None:
        self.loss = loss
        self.y = y
        self.weights = weights

    def value_and_slope(self, f: Vector) -> tuple[float, Vector]:
        """Return the loss of the scores of all nodes, one row per label, and its slope."""
        values, slopes = self.loss.leaf_losses(self.loss.tree.leaf_scores(f), self.y)
        slopes *= self.weights[:, None]
        return inner(self.weights, values), self.loss.tree.node_slopes(slopes)
