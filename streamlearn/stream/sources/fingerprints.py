"""The fingerprints of many files, by partition and by inode.

A directory may have thousands of files, and each new one is compared with those that were read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping

from streamlearn.stream.sources.rotation import Fingerprint


class Fingerprints(MutableMapping[str, str]):
    """Fingerprints by the names of partitions.

    >>> kept = Fingerprints({"a.log": "7:0:e3b0", "b.log": "8:0:e3b0"})
    >>> kept["a.log"] = "8:2:ca97"
    >>> kept.with_inode(7), kept.with_inode(8)
    ([], ['b.log', 'a.log'])
    """

    def __init__(self, kept: Mapping[str, str]) -> None:
        self._texts: dict[str, str] = {}
        self._names: dict[int, dict[str, None]] = {}  # by inode
        self.update(kept)

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def __setitem__(self, name: str, fingerprint: str) -> None:
        if name in self._texts:
            self._forget_inode(name)
        self._texts[name] = fingerprint
        self._names.setdefault(Fingerprint.inode(fingerprint), {})[name] = None

    def __delitem__(self, name: str) -> None:
        self._forget_inode(name)
        del self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def with_inode(self, inode: int | None) -> list[str]:
        """List the partitions whose file has this inode."""
        return [] if inode is None else list(self._names.get(inode, ()))

    def _forget_inode(self, name: str) -> None:
        inode = Fingerprint.inode(self._texts[name])
        del self._names[inode][name]
        if not self._names[inode]:
            del self._names[inode]
