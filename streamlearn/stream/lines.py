"""Bytes to lines, with the place of each: what files and standard input share."""

from __future__ import annotations

from itertools import accumulate

from streamlearn.errors import SourceError

LONGEST = 1 << 26  # bytes of one line


class Lines:
    r"""Lines of a stream of blocks; positions count its bytes.

    >>> lines = Lines("clicks.txt", 100)
    >>> lines.push(b"one\n\ntw")
    >>> lines.take(10)
    ([100], [b'one'], 105)
    >>> lines.push(b"o\nthree")
    >>> lines.take(10)
    ([105], [b'two'], 109)
    >>> lines.finish()
    >>> lines.take(10)
    ([109], [b'three'], 114)
    """

    def __init__(self, name: str, position: int = 0) -> None:
        self.name = name
        self.position = position  # of the line that is taken next
        self._rest = b""
        self._ready: list[bytes] = []
        self._at = 0

    @property
    def waiting(self) -> bool:
        """Whether a whole line can be taken."""
        return self._at < len(self._ready)

    @property
    def read(self) -> int:
        """The position up to which bytes were pushed, if no line is waiting."""
        return self.position + len(self._rest)

    def push(self, block: bytes) -> None:
        """The next bytes, once no line is waiting."""
        self._ready = (self._rest + block).split(b"\n") if self._rest else block.split(b"\n")
        self._rest = self._ready.pop()
        self._at = 0
        if len(self._rest) > LONGEST:
            raise SourceError(
                f"{self.name}: the line at byte {self.position} is longer than {LONGEST} bytes: "
                "is this a text file?"
            )

    def finish(self) -> None:
        """No bytes follow: what is left is a line."""
        if self._rest:
            self._ready, self._rest, self._at = [self._rest], b"", 0
            self._ended = True

    _ended = False

    def take(self, most: int) -> tuple[list[int], list[bytes], int]:
        """Offsets and lines, those that are empty left out, and the position after them."""
        lines = self._ready[self._at : self._at + most]
        self._at += len(lines)
        ends = list(accumulate([len(line) + 1 for line in lines], initial=self.position))
        self.position = ends.pop() - (self._ended and bool(lines))
        if b"" in lines or b"\r" in lines:
            kept = [(at, line) for at, line in zip(ends, lines, strict=True) if line.strip()]
            return [at for at, _ in kept], [line for _, line in kept], self.position
        return ends, lines, self.position
