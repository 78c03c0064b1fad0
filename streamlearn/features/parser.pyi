from collections.abc import Iterable
from typing import Any

from streamlearn.features.transforms import Transforms

def sorted_items(values: Iterable[Any]) -> Iterable[Any]: ...

class EventParser(Transforms): ...
