"""All sources keep the laws of sources, and the test of these laws finds those who break one."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.stream import Clicks, Files, Records, Synthetic, check_source
from streamlearn.stream.sources.synthetic import PARTITION, write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from streamlearn.stream import Partition


def test_files_conform(tmp_path: Path) -> None:
    for seed, name in enumerate(("a", "b")):
        write(tmp_path / f"{name}.jsonl", Clicks(seed=seed), 30 - 9 * seed)
    check_source(lambda: Files([f"{tmp_path}/*.jsonl"], batch=7))
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    check_source(lambda: Files([str(packed)], batch=7))


def test_synthetic_streams_conform() -> None:
    check_source(lambda: Synthetic(Clicks(seed=1), events=30, batch=7))


class Broken(Synthetic):
    """Five records at a time."""

    def __init__(self) -> None:
        super().__init__(Clicks(seed=1), events=23, batch=5)


class StartsOver(Broken):
    def open(self, positions: Mapping[Partition, int], identity: Any) -> None:
        super().open(dict.fromkeys(positions, 0), identity)


class ResumesLate(Broken):
    def open(self, positions: Mapping[Partition, int], identity: Any) -> None:
        super().open({where: min(at + 1, 23) for where, at in positions.items()}, identity)


class GoesOnAnywhere(Broken):
    def open(self, positions: Mapping[Partition, int], identity: Any) -> None:
        super().open({where: min(at, 23) for where, at in positions.items()}, identity)


class NeverEnds(Broken):
    def ended(self) -> bool:
        return False


class HasNoLag(Broken):
    def lag(self) -> dict[Partition, int | None]:
        return {}


class ChangesIdentity(Broken):
    def identity(self) -> dict[str, str]:
        return {"synthetic": str(self._at)}

    def open(self, positions: Mapping[Partition, int], identity: Any) -> None:
        super().open(positions, identity and None)


class CountsFromZero(Broken):
    def poll(self, seconds: float) -> list[Records]:
        found = super().poll(seconds)
        return [Records(PARTITION, range(5), one.values, one.end) for one in found]


class ClosesOnce(Broken):
    closed = False

    def close(self) -> None:
        assert not self.closed
        self.closed = True


class IsRandom(Broken):
    made = 0

    def __init__(self) -> None:
        super().__init__()
        IsRandom.made += 1
        self.stream = Clicks(seed=IsRandom.made)

    def identity(self) -> dict[str, str]:
        return {}

    def open(self, positions: Mapping[Partition, int], identity: Any) -> None:
        super().open(positions, identity and None)


@pytest.mark.parametrize("kind", Broken.__subclasses__())
def test_a_source_that_breaks_a_law_is_found(kind: type[Broken]) -> None:
    check_source(Broken)
    with pytest.raises(AssertionError):
        check_source(kind, seconds=0.2)
