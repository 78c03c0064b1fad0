from typing import Any, final

NAMES: tuple[str, ...]

@final
class Clock:
    now: float
    least: float
    latest: float
    run: int
    behind: int
    seen: int
    def __init__(self, hold_for: float = ...) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
