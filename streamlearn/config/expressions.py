"""Parser of constructor calls such as ``"L1(1e-3)"`` in configurations and on the command line.

It accepts only names of this library, literals, and nested calls of these names; nothing is
evaluated. Parsing the `repr` of an object returns an equal object.
"""

from __future__ import annotations

import ast
import inspect
import math
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from streamlearn import losses, penalties, rules
from streamlearn.core.nearest import nearest
from streamlearn.core.parameters import Parameterized
from streamlearn.errors import StreamlearnError
from streamlearn.estimators.linear import Linear
from streamlearn.estimators.parameter_data import all_subclasses
from streamlearn.features import Hashing, Names, Reader
from streamlearn.losses.loss import AnyLoss
from streamlearn.rules import schedules

if TYPE_CHECKING:
    from types import ModuleType

T = TypeVar("T")
MAX_LENGTH = 10_000  # characters, far more than any real call
FAMILIES: dict[str, type[Any]] = {
    "rule": rules.Rule,
    "loss": AnyLoss,
    "penalty": penalties.Penalty,
    "schedule": schedules.Schedule,
    "features": Reader,
    "model": Linear,
}


class ExpressionError(StreamlearnError, ValueError):
    """Raised for text that is not a valid call; the message suggests the closest valid name."""


@overload
def parse(text: str, kind: type[T]) -> T: ...
@overload
def parse(text: str, kind: None = None) -> Any: ...
def parse(text: str, kind: type[Any] | None = None) -> Any:
    """Return the object that a call such as ``"DualAveraging(gamma=5.0)"`` creates.

    A name alone is a call without arguments. With `kind`, the object must be an instance of it.

    >>> parse("ElasticNet(l1=1e-3, l2=0.1)")
    ElasticNet(l1=0.001, l2=0.1)
    >>> parse("Mixture([CoinBetting(), GradientDescent(Inverse(0.5))])").rules[0]
    CoinBetting(alpha=1.0, beta=1.0)
    >>> parse("DualAveragin(gamma=5)")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    streamlearn...ExpressionError: unknown name DualAveragin; did you mean DualAveraging?
    >>> parse("Hinge", rules.Rule)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    streamlearn...ExpressionError: expected a rule, got a loss: Hinge(threshold=1.0)
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"expected at most {MAX_LENGTH} characters, got {len(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        made = _evaluate(ast.Call(tree, [], []) if isinstance(tree, ast.Name) else tree, kind)
    except SyntaxError as error:
        raise ExpressionError(
            f"{text[:80]!r} is not a call such as DualAveraging(gamma=5.0): {error.msg}"
        ) from None
    except (RecursionError, MemoryError):
        raise ExpressionError("calls are nested too deeply") from None
    if kind is not None and not isinstance(made, kind):
        if _family(type(made)) == _family(kind):  # such as a classifier instead of a regressor
            hint = nearest(type(made).__name__, known_classes(kind))
            raise ExpressionError(f"expected a {kind.__name__}, got {unparse(made)}; {hint}")
        raise ExpressionError(
            f"expected {_family(kind)}, got {_family(type(made))}: {unparse(made)}"
        )
    return made


def unparse(value: Any) -> str:
    """Return text that `parse` reads back; of an estimator, only parameters that are not defaults.

    >>> import streamlearn as sl
    >>> unparse(sl.DualAveragingClassifier(l1=0.01))
    'DualAveragingClassifier(l1=0.01)'
    """
    if not isinstance(value, Linear):
        return repr(value)
    given = [
        f"{name}={item!r}"
        for name, item in value.params.items()
        if item != _defaults(type(value)).get(name)
    ]
    return f"{type(value).__name__}({', '.join(given)})"


def known_classes(kind: type[Any] | None = None) -> dict[str, type[Any]]:
    """Return the classes that may be called, by name; only those of `kind` if it is given.

    A `kind` of no family, such as the losses of rankings, has its own.
    """
    if kind is not None and not issubclass(kind, tuple(FAMILIES.values())):
        leaves = [cls for cls in all_subclasses(kind) if not cls.__subclasses__()]
        return {cls.__name__: cls for cls in leaves}
    found = {cls.__name__: cls for cls in all_subclasses(Linear) if not _abstract(cls)}
    for family in (rules, losses, penalties, schedules):
        found |= _members(family)
    found |= {cls.__name__: cls for cls in (Names, Hashing)}
    return {name: cls for name, cls in found.items() if kind is None or issubclass(cls, kind)}


def split_calls(text: str) -> list[str]:
    """Split a comma-separated list of calls.

    >>> split_calls("Pegasos, Proximal(radius=2.0, horizon=1e3),AdaGrad")
    ['Pegasos', 'Proximal(radius=2.0, horizon=1e3)', 'AdaGrad']
    """
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def _members(family: ModuleType) -> dict[str, type[Any]]:
    """Return the public classes of one family, without base classes and helpers."""
    names = getattr(family, "__all__", dir(family))
    found = {name: getattr(family, name) for name in names}
    return {
        name: cls
        for name, cls in found.items()
        if inspect.isclass(cls) and issubclass(cls, Parameterized) and not _abstract(cls)
    }


def _abstract(cls: type[Any]) -> bool:
    bases = (rules.Rule, losses.Loss, losses.VectorLoss, penalties.Penalty, schedules.Schedule)
    return cls in {*bases, Parameterized}


def _evaluate(node: ast.expr, kind: type[Any] | None = None) -> Any:
    """Evaluate a literal, or a call of a known class."""
    if isinstance(node, ast.Call):
        return _call(node, kind)
    if isinstance(node, ast.List | ast.Tuple):
        items = [_evaluate(item) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    if isinstance(node, ast.Dict) and None not in node.keys:
        keys = cast("list[ast.expr]", node.keys)
        pairs = zip(keys, node.values, strict=True)
        return {_literal(key): _evaluate(item) for key, item in pairs}
    return _literal(node)


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id == "inf":
        return math.inf
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _literal(node.operand)
        if isinstance(inner, int | float) and not isinstance(inner, bool):
            return -inner
    if isinstance(node, ast.Constant) and not isinstance(node.value, complex | type(...)):
        return node.value
    if isinstance(node, ast.Tuple):
        return tuple(_literal(item) for item in node.elts)
    raise ExpressionError(
        f"{ast.unparse(node)} is not supported; use literals and calls such as L1(1e-3)"
    )


def _call(node: ast.Call, kind: type[Any] | None) -> Any:
    """Create the object; its constructor may raise ValueError."""
    if not isinstance(node.func, ast.Name):
        raise ExpressionError(f"{ast.unparse(node.func)} is not supported; call a class by name")
    name, classes = node.func.id, known_classes() | known_classes(kind)
    if name not in classes:
        raise ExpressionError(f"unknown name {name}; {nearest(name, known_classes(kind))}")
    names = parameters(classes[name])
    if len(node.args) > len(names):
        raise ExpressionError(
            f"{name} takes {len(names)} parameters ({', '.join(names) or 'none'}), "
            f"got {len(node.args)}"
        )
    for word in node.keywords:
        if word.arg not in names:
            hint = nearest(word.arg or "**", names) if names else "it has none"
            raise ExpressionError(f"{name} has no parameter {word.arg or '**'}; {hint}")
    args = [_evaluate(item) for item in node.args]
    words = {word.arg: _evaluate(word.value) for word in node.keywords if word.arg}
    try:
        return classes[name](*args, **words)
    except TypeError as error:
        raise ExpressionError(
            f"{ast.unparse(node)}: {error}; its parameters are {', '.join(names)}"
        ) from None


def parameters(cls: type[Any]) -> tuple[str, ...]:
    """Return the names of the constructor's parameters, in order."""
    if issubclass(cls, Parameterized):
        return cls.parameter_names()
    if issubclass(cls, Reader):
        return tuple(cls().params)
    return tuple(_defaults(cls))


def _defaults(cls: type[Any]) -> dict[str, Any]:
    """Return an estimator's parameters with their defaults."""
    return {name: item.default for name, item in inspect.signature(cls).parameters.items()}


def _family(cls: type[Any]) -> str:
    """Return the family of a class, for a message."""
    for name, base in FAMILIES.items():
        if issubclass(cls, base):
            return name if name == "features" else f"a {name}"
    return f"a value of type {cls.__name__}"
