from typing import Any, final

STATE_NAMES: tuple[str, ...]

@final
class Clock:
    now: float
    earliest_ahead: float
    latest_behind: float
    ahead_count: int
    behind_count: int
    seen: int
    def __init__(self, hold_for: float = ...) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
