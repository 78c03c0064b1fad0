from collections.abc import Callable, Mapping
from typing import Any

from streamlearn.core.arrays import Array
from streamlearn.engine.events import Events

class LabelColumn:
    index: Array
    first: list[int]
    distinct: list[Any]
    def __init__(
        self,
        n: int,
        numbers: Array | None,
        label_of: Callable[[int], Any],
        weights: Array | None = None,
    ) -> None: ...
    def coded(
        self,
        codes: Mapping[Any, float],
        otherwise: float = 0.0,
        start: int = 0,
        stop: int | None = None,
    ) -> Array: ...
    def read_numbers(
        self, numbers: Array, label_of: Callable[[int], Any], weights: Array | None
    ) -> bool: ...
    def read_any(self, label_of: Callable[[int], Any], weights: Array | None) -> None: ...

def column_of_array(y: Array, weights: Array | None = None) -> LabelColumn: ...
def column_of_events(events: Events, weights: Array) -> LabelColumn: ...
def exact_as_float(y: Array) -> bool: ...
