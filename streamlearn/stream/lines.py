"""Bytes to lines, with the place of each: what files and standard input share."""

from __future__ import annotations

from streamlearn.errors import SourceError
from streamlearn.stream.cut import cut

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
        self._block = b""
        self._at = 0  # where in the block that line begins
        self._ended = False

    @property
    def waiting(self) -> bool:
        """Whether a whole line can be taken."""
        return self._block.find(b"\n", self._at) >= 0

    @property
    def read(self) -> int:
        """The position up to which bytes were pushed."""
        return self.position + len(self._block) - self._at

    def push(self, block: bytes) -> None:
        """The next bytes, once no line is waiting."""
        rest = self._block[self._at :]
        if len(rest) > LONGEST:
            raise SourceError(
                f"{self.name}: the line at byte {self.position} is longer than {LONGEST} bytes: "
                "is this a text file?"
            )
        self._block, self._at = rest + block, 0

    def finish(self) -> None:
        """No bytes follow: what is left is a line."""
        if len(self._block) > self._at:
            self.push(b"\n")
            self._ended = True

    def take(self, most: int) -> tuple[list[int], list[bytes], int]:
        """Offsets and lines, blank ones left out, and the position after them."""
        offsets, lines, end = cut(self._block, self._at, most, self.position)
        # the break that `finish` added is not in the file
        added = self._ended and end == len(self._block)
        self.position += end - self._at - added
        self._at = end
        return offsets, lines, self.position
