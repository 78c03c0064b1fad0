"""Times as the calendar's categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from streamlearn.features.fields.field import CheckedField

PARTS = ("hour", "weekday", "month")
ORDERS = ("dmy", "mdy", "ymd")
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True, repr=False)
class Time(CheckedField):
    """A time as categories: `field.hour=13`, `field.weekday=mon`, `field.month=11`.

    It is in ISO 8601, in UTC unless it has an offset, or a number of `unit` since 1970, from 1900
    to 2100. `zone` is the zone of the calendar. Without a part, hour and weekday.

    `order="dmy"` also reads dates such as `31.1.2026` and `31 Jan 26`, `"mdy"` such as `1/31/2026`,
    `"ymd"` such as `2026/1/31` and 20260131, with or without a time of day as in `1:05 PM`.
    """

    kind: ClassVar[str] = "time"
    hour: bool = False
    weekday: bool = False
    month: bool = False
    zone: str = "UTC"
    unit: Literal["s", "ms", "us", "ns"] = "s"
    order: Literal["dmy", "mdy", "ymd"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order is not None and self.order not in ORDERS:
            raise ValueError(f"time: order={self.order!r}: use one of {', '.join(ORDERS)}")
        if self.unit not in UNITS:
            raise ValueError(f"time: unit={self.unit!r}: use one of {', '.join(UNITS)}")
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
            raise ValueError(
                f"time: zone={self.zone!r} is not known here: use a name such as 'Europe/Berlin',"
                " and install tzdata if the system has no time zones"
            ) from None

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that are features."""
        return tuple(part for part in PARTS if getattr(self, part)) or PARTS[:2]
