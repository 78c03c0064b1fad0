from typing import Any, ClassVar, Self

class Parameterized:
    _names: ClassVar[tuple[str, ...]]
    _examples: ClassVar[tuple[tuple[Any, ...], ...]]
    @classmethod
    def examples(cls) -> list[Self]: ...
    @classmethod
    def parameter_names(cls) -> tuple[str, ...]: ...
    @property
    def params(self) -> dict[str, Any]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def number(
    owner: str,
    name: str,
    value: object,
    *,
    low: float | None = None,
    above: float | None = None,
    below: float | None = None,
    high: float | None = None,
) -> float: ...
