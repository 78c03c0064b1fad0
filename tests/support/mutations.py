"""Damage to valid records, as hostile producers, full disks and wrong schemas do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

# the ends of varints of 32 and 64 bits, of lengths, and of counts
EXTREMES = [
    b"\xff" * 9 + b"\x01",
    b"\xfe" + b"\xff" * 8 + b"\x01",
    b"\xff" * 10,
    b"\x80" * 9 + b"\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x10",
    b"\x01",
    b"\x00",
    b"\x7f",
    b"\x80",
    b"\x80\x10",
]


def mutated(draw: random.Random, records: Sequence[bytes]) -> bytes:
    """Return one of these records with a few random changes."""
    found = bytearray(draw.choice(records))
    for _ in range(draw.randrange(1, 5)):
        at = draw.randrange(len(found) + 1)
        end = min(at + draw.randrange(1, 9), len(found))
        match draw.randrange(7):
            case 0 if found:
                found[at % len(found)] ^= 1 << draw.randrange(8)
            case 1 if found:
                found[at % len(found)] = draw.randrange(256)
            case 2:
                found[at:end] = draw.choice(EXTREMES)
            case 3:
                found[at:at] = draw.choice(EXTREMES)
            case 4:
                del found[at:end]
            case 5:
                found[at:at] = found[at:end] * draw.randrange(1, 20)
            case _:
                other = draw.choice(records)
                found[at:] = other[draw.randrange(len(other) + 1) :]
    return bytes(found)
