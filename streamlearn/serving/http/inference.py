"""The Open Inference Protocol (V2): one named input for each field of the events."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from streamlearn.features import Names
from streamlearn.features.fields import Auto, Ignore, Interaction, Number
from streamlearn.features.fields.spec import OTHERS
from streamlearn.features.pieces import short_repr
from streamlearn.quality.importance import field_of
from streamlearn.serving.http.predicting import Prediction, Refusal
from streamlearn.serving.http.reading import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.features import Reader
    from streamlearn.serving.http.predicting import Predictor

BITS = (8, 16, 32, 64)
# the least and the greatest value of each datatype of integers
INTEGERS = {f"UINT{bits}": (0, 2**bits - 1) for bits in BITS} | {
    f"INT{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in BITS
}
# the datatypes of the protocol: what they take, and its types in JSON
DATATYPES: dict[str, tuple[str, set[type]]] = {
    "BOOL": ("true or false", {bool, NoneType}),
    **dict.fromkeys(INTEGERS, ("integers", {int, NoneType})),
    **dict.fromkeys(("FP16", "FP32", "FP64"), ("numbers", {int, float, NoneType})),
    "BYTES": ("texts", {str, NoneType}),
}
MOST_NAMES = 10_000  # of which the fields of a model are read, if they are not declared


class Tensor(msgspec.Struct):
    """An input or an output: a value of one field for each event."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]


class RequestedOutput(msgspec.Struct):
    """An output that a request asks for."""

    name: str


class InferenceRequest(msgspec.Struct):
    """A request; unknown members, such as parameters, are ignored.

    outputs: those that are asked for; none: all.
    """

    inputs: list[Tensor]
    id: str | None = None
    outputs: list[RequestedOutput] = []


REQUEST = msgspec.json.Decoder(InferenceRequest)


def read(body: bytes, most: int) -> tuple[InferenceRequest, list[bytes]]:
    """Return a request, and its events as records."""
    try:
        request = REQUEST.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(400, f"invalid request: {error}") from None
    if not request.inputs:
        raise RequestError(400, "inputs are missing: give one for each field")
    count = len(request.inputs[0].data)
    for one in request.inputs:
        check_values(one)
        flat = one.shape in ([count], [count, 1])
        if not flat or len(one.data) != count:
            raise RequestError(
                400,
                f"input {one.name!r} has the shape {one.shape} and {len(one.data)} values: all "
                f"inputs need the shape [{count}], one value for each event",
            )
    if len({one.name for one in request.inputs}) < len(request.inputs):
        raise RequestError(400, "two inputs have the same name")
    if count > most:
        raise RequestError(413, f"{count} events are more than {most}; send fewer a request")
    names = [one.name for one in request.inputs]
    rows = zip(*[one.data for one in request.inputs], strict=True)
    return request, [msgspec.json.encode(dict(zip(names, row, strict=True))) for row in rows]


def check_values(given: Tensor) -> None:
    """Raise RequestError unless the values are of the datatype, or null where there is none.

    >>> check_values(Tensor("age", [2], "FP32", [31, None]))
    >>> check_values(Tensor("age", [1], "FP32", ["31"]))
    Traceback (most recent call last):
    streamlearn.serving.http.reading.RequestError: input 'age': FP32 takes numbers, got '31'
    """
    expected = DATATYPES.get(given.datatype)
    if expected is None:
        raise RequestError(
            400,
            f"input {given.name!r} has the datatype {given.datatype!r}: expected one of "
            f"{', '.join(DATATYPES)}",
        )
    text, kinds = expected
    wrong = []
    if not {*map(type, given.data)} <= kinds:
        wrong = [value for value in given.data if type(value) not in kinds]
    elif given.datatype in INTEGERS:
        low, high = INTEGERS[given.datatype]
        text += f" from {low} to {high}"
        wrong = [value for value in given.data if value is not None and not low <= value <= high]
    if wrong:
        raise RequestError(
            400, f"input {given.name!r}: {given.datatype} takes {text}, got {short_repr(wrong[0])}"
        )


def wanted(request: InferenceRequest, given: list[Tensor]) -> list[Tensor]:
    """Return the outputs that a request asks for."""
    if not request.outputs:
        return given
    by_name = {one.name: one for one in given}
    names = [one.name for one in request.outputs]
    if unknown := [name for name in names if name not in by_name]:
        raise RequestError(
            400, f"there is no output {unknown[0]!r}; there are: {', '.join(by_name)}"
        )
    return [by_name[name] for name in names]


def outputs(predictor: Predictor, found: Sequence[Prediction | Refusal]) -> list[Tensor]:
    """Return the outputs: label or value, score, and probability if there is one.

    Tensors have no null, so there is no label before the model has learned one. Those of no events
    have the types of those of an event.
    """
    if not found:
        given = outputs(predictor, predictor.predict([b"{}"], explain=False))
        return [Tensor(one.name, [0], one.datatype, []) for one in given]
    for number, one in enumerate(found):
        if isinstance(one, Refusal):
            raise RequestError(400, f"event {number}: {one.error.reason}")
    good = [one for one in found if isinstance(one, Prediction)]
    names = predictor.names
    tensors = []
    if predictor.classes and predictor.labels:
        tensors.append(tensor("label", [one.label for one in good], predictor.labels))
    elif not predictor.classes:
        tensors += columns("value", [one.value for one in good], names)
    tensors += columns("score", [one.score for one in good], names)
    if all(one.id is not UNSET for one in good):
        tensors.append(tensor("id", [one.id for one in good]))
    if good[0].probability is not UNSET:
        tensors.append(tensor("probability", [one.probability for one in good]))
    if good[0].probabilities is not UNSET:
        tensors += columns("probability", [one.probabilities for one in good], names)
    return tensors


def columns(name: str, values: list[Any], names: Sequence[str]) -> list[Tensor]:
    """Return a value of each event as a tensor; of several, one for each label or target."""
    if not isinstance(values[0], dict):
        return [tensor(name, values)]
    return [tensor(f"{name}.{key}", [one[key] for one in values]) for key in names]


def tensor(name: str, values: list[Any], like: Sequence[Any] = ()) -> Tensor:
    """Return values as a tensor of their type, or of those `like` them; several types are text."""
    kinds = {type(value) for value in [*values, *like]}
    for kind, datatype in ((bool, "BOOL"), (int, "INT64"), (float, "FP64")):
        if kinds <= {kind}:
            return Tensor(name, [len(values)], datatype, values)
    texts = [value if isinstance(value, str) else str(value) for value in values]
    return Tensor(name, [len(values)], "BYTES", texts)


def metadata(predictor: Predictor) -> dict[str, Any]:
    """Return the metadata of a model; its outputs are those of an event without fields."""
    return {
        "name": predictor.learner,
        "versions": [predictor.version],
        "platform": "streamlearn",
        "inputs": [described(*one) for one in datatypes(predictor.snapshot.reader).items()],
        "outputs": [described(one.name, one.datatype) for one in outputs(predictor, [])],
    }


def described(name: str, datatype: str) -> dict[str, Any]:
    """Return the metadata of an input or an output."""
    return {"name": name, "datatype": datatype, "shape": [-1]}


def datatypes(reader: Reader) -> dict[str, str]:
    """Return the datatype of each field that is declared, or that the first names belong to.

    >>> names = Names({"age": "number", "user^age": "interaction", "debug": "ignore"})
    >>> _ = names.read_event({"user": "ann", "price": 3.5, "debug": 1})
    >>> datatypes(names)
    {'age': 'FP64', 'user': 'BYTES', 'price': 'FP64'}
    """
    declared = {
        name: field
        for name, field in reader.fields.items()
        if name != OTHERS and not isinstance(field, Interaction)
    }
    found = {
        name: "FP64" if isinstance(field, Number) else "BYTES"
        for name, field in declared.items()
        if not isinstance(field, Auto | Ignore)
    }
    if isinstance(reader, Names):
        for slot in range(min(reader.name_count, MOST_NAMES)):
            text = str(reader.name_of(slot))
            name = field_of(text, declared)
            if not (reader.fields.interactions and "^" in text):
                found.setdefault(name, "FP64" if name == text else "BYTES")
    return found
