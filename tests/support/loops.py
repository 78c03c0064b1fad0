"""A log and a sink in memory, and what is in the newest checkpoint."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from streamlearn.daemon.process.log import Log
from streamlearn.estimators import checkpoints, model_file
from streamlearn.stream.sinks.sink import Sink
from tests.support.streams import make_loop

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from streamlearn.daemon.loop import Loop
    from streamlearn.daemon.process.exits import Exit
    from streamlearn.stream.records import Header


class MemoryLog(Log):
    """A log in memory."""

    def __init__(self) -> None:
        super().__init__("json", "debug", stream=io.StringIO())

    def lines(self, text: str = "") -> list[dict[str, Any]]:
        assert isinstance(self.stream, io.StringIO)
        found = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [line for line in found if text in line["event"]]


class MemorySink(Sink):
    """A sink in memory."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes | None, bytes | None, dict[str, bytes | None]]] = []
        self.flushed = 0
        self.error: Exception | None = None

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[Header] = ()
    ) -> None:
        self.sent.append((value, key, dict(headers)))

    def flush(self, seconds: float) -> None:
        assert seconds > 0.0
        if self.error is not None:
            raise self.error
        self.flushed = len(self.sent)

    def close(self) -> None:
        pass


def newest(directory: Path) -> dict[str, Any]:
    found = checkpoints.newest(directory)
    assert found is not None
    return found[1]


def learned(data: dict[str, Any]) -> bytes:
    """The state that must not depend on batches and restarts, as bytes."""
    return model_file.pack({name: data[name] for name in ("learners", "features", "choice")})


def run(
    tmp_path: Path, names: str, log: MemoryLog | None = None, **options: Any
) -> tuple[Exit, Loop]:
    loop = make_loop(tmp_path, names=names, until="100", log=log, **options)
    return loop.run(), loop
