from typing import Literal

ORDERS: dict[str | None, int]

def date_seconds(value: str | float, order: Literal["ymd", "mdy", "dmy"]) -> int | None: ...
