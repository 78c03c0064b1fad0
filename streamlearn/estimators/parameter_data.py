"""Parameters of estimators as plain data, for model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlearn.core.parameters import Parameterized
from streamlearn.errors import ModelFileError
from streamlearn.features import Reader, from_state


def encode_param(value: Any) -> Any:
    """Return a parameter as plain data; each dict in it has a tag for its only or first key."""
    if isinstance(value, Parameterized):
        params = {name: encode_param(item) for name, item in value.params.items()}
        return {"spec": type(value).__name__, "params": params}
    if isinstance(value, Reader):
        return {"features": value.fresh().state()}
    if isinstance(value, Mapping):
        return {"mapping": [(encode_param(key), encode_param(item)) for key, item in value.items()]}
    if isinstance(value, tuple | list):
        return type(value)([encode_param(item) for item in value])
    return value


def decode_param(value: Any) -> Any:
    """Invert `encode_param`; only classes of this package are ever created."""
    if isinstance(value, tuple | list):
        return type(value)([decode_param(item) for item in value])
    if not isinstance(value, dict):
        return value
    if "mapping" in value:
        return {decode_param(key): decode_param(item) for key, item in value["mapping"]}
    if "features" in value:
        return from_state(value["features"])
    classes = {kind.__name__: kind for kind in all_subclasses(Parameterized)}
    if value["spec"] not in classes:
        raise ModelFileError(f"the model needs {value['spec']}, which this process has not defined")
    params = {name: decode_param(item) for name, item in value["params"].items()}
    return classes[value["spec"]](**params)


def all_subclasses(kind: type[Any]) -> list[type[Any]]:
    """Return the subclasses of a class, and theirs."""
    return [found for sub in kind.__subclasses__() for found in (sub, *all_subclasses(sub))]
