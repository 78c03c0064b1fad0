"""CSV, byte by byte and character by character: where rows end, what is in them, what they mean.

A row ends at the first line break outside quotes, which is among its first MiB of bytes. A quote at
a value's beginning opens it, two are one inside, and behind the closing one comes a delimiter or
the row's end: carriage returns and a line break, or the end of the data. Where there is no such end
the row is invalid, and is its first line.
"""

from __future__ import annotations

import math
import re
from typing import Any

LONGEST = 1 << 20
BLANKS = " \t\r\n\v\f"
MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def rows(data: bytes, delimiter: str, longest: int = LONGEST) -> list[tuple[int, bytes]]:
    """Where each row begins, and the row without its line break; blank lines are none."""
    found, start = [], 0
    while start < len(data):
        stop = row_end(data, start, delimiter.encode(), longest)
        if stop is None:  # invalid
            stop = data.find(b"\n", start)
            stop = len(data) if stop < 0 else stop
        if data[start:stop].strip(b" \t\r"):
            found.append((start, data[start:stop]))
        start = stop + 1
    return found


def row_end(data: bytes, start: int, delimiter: bytes, longest: int) -> int | None:
    """Where the row ends that begins there; None: it is invalid."""
    at, state = start, "begin"
    while at < len(data):
        if at - start >= longest:
            return None
        here = data[at : at + 1]
        if state == "quoted":
            if here == b'"':
                state = "closed"
            at += 1
        elif state == "closed" and here == b'"':
            state = "quoted"
            at += 1
        elif here == b"\n":
            return at
        elif data.startswith(delimiter, at) and state != "return":
            state = "begin"
            at += len(delimiter)
        elif state in {"closed", "return"}:
            if here != b"\r":
                return None
            state = "return"
            at += 1
        else:
            state = "quoted" if state == "begin" and here == b'"' else "plain"
            at += 1
    return None if state == "quoted" or at - start >= longest else len(data)


def values(row: bytes, delimiter: str) -> list[str] | None:
    """The values of a row; None: it is invalid."""
    try:
        text = row.rstrip(b"\r\n").decode()
    except UnicodeDecodeError:
        return None
    found, value, state = [], "", "begin"
    for sign in text:
        if state == "quoted":
            if sign == '"':
                state = "closed"
            else:
                value += sign
        elif state == "closed" and sign == '"':
            value += sign
            state = "quoted"
        elif sign == delimiter:
            found.append(value)
            value, state = "", "begin"
        elif state == "closed" or sign in "\r\n":
            return None
        elif state == "begin" and sign == '"':
            state = "quoted"
        else:
            value += sign
            state = "plain"
    return None if state == "quoted" else [*found, value]


def number(text: str) -> float | None:
    """The number that a value is, whole ones as int."""
    text = text.strip(BLANKS)
    if not NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        return None
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


def event(
    row: list[str], columns: list[str], text: set[str], *, label: str | None = None
) -> dict[str, Any] | None:
    """The event of a row whose columns are of text or of numbers; None: it is invalid."""
    if len(row) != len(columns):
        return None
    found: dict[str, Any] = {}
    for name, value in zip(columns, row, strict=True):
        if value.strip(BLANKS).lower() in MISSING:
            continue
        if name in text:
            flag = name == label and value.lower() in {"true", "false"}
            found[name] = value.lower() == "true" if flag else value
        else:
            x = number(value)
            if x is None:
                return None
            found[name] = x
    return found
