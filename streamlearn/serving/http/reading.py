"""Bodies of requests: one event, a list of events, or lines of events (NDJSON)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

LINES = b"application/x-ndjson"
RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])


class RequestError(Exception):
    """A request that is refused, with its status and a reason for the client."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = headers


class Disconnected(Exception):
    """The client is gone."""


class Body(NamedTuple):
    """The events of a request, as bytes."""

    records: list[bytes]
    kind: str  # "one", "list" or "lines"


async def read(receive: Receive, limit: int, seconds: float) -> bytes:
    """Return the body of a request; RequestError if it is too large or too slow."""
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        body: bytes = message.get("body", b"")
        if len(body) > limit:
            raise too_large(limit)
        return body
    try:
        async with asyncio.timeout(seconds):
            return await read_on(message, receive, limit)
    except TimeoutError:
        raise RequestError(408, f"the body took longer than {seconds:g} s") from None


async def read_on(message: Message, receive: Receive, limit: int) -> bytes:
    """Return a body of several messages."""
    pieces, size = [], 0
    while True:
        if message["type"] == "http.disconnect":
            raise Disconnected
        piece = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        pieces.append(piece)
        if not message.get("more_body", False):
            return b"".join(pieces)
        message = await receive()


def too_large(limit: int) -> RequestError:
    """Return the error of a body beyond the limit."""
    return RequestError(413, f"a body has at most {limit} bytes; send fewer events a request")


def split(body: bytes, content_type: bytes, most: int) -> Body:
    """Split a body into the records of its events, without decoding them."""
    if content_type.lower().startswith(LINES):  # media types have no case
        body = body.strip()
        records, kind = (body.splitlines() if b"\r" in body else body.split(b"\n")), "lines"
        records = [one for one in records if one and not one.isspace()]
    elif body[:1] == b"{":
        return Body([body], "one")
    elif body.lstrip(b" \t\r\n")[:1] == b"[":
        try:
            records, kind = [bytes(one) for one in RAW_LIST.decode(body)], "list"
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise RequestError(422, f"invalid JSON: {error}") from None
    else:
        return Body([body.strip(b" \t\r\n")], "one")
    if len(records) > most:
        raise RequestError(413, f"{len(records)} events are more than {most}; send fewer a request")
    return Body(records, kind)
