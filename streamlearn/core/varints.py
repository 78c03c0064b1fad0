"""Integers as seven bits a byte, the lowest first, as in Protobuf and Avro."""

from __future__ import annotations


def varint(number: int) -> bytes:
    """Return an integer as seven bits a byte.

    >>> varint(300).hex()
    'ac02'
    """
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
