"""Globs that are followed: each line once, whatever becomes of the files' names."""

from __future__ import annotations

import os
import random
import sys
import time
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.errors import SourceChangedError, SourceNotFoundError
from streamlearn.stream import Files, Partition
from streamlearn.stream.sources import file, file_inventory, fingerprints, rotation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType


class Folder:
    """Files that come and go, and who follows a glob of them."""

    def __init__(self, path: Path, *globs: str) -> None:
        self.path, self.globs = path, globs or ("*.log*",)
        self.reports: list[str] = []
        self.positions: dict[Partition, int] = {}
        self.stamp = 0
        self.source = self.made()

    def made(self) -> Files:
        paths = [str(self.path / name) for name in self.globs]
        return Files(paths, follow=True, batch=3, report=self.reports.append)

    def open(self) -> Folder:
        self.source.open(self.positions, None)
        return self

    def restart(self, meanwhile: object = None) -> None:
        """Stop, let something happen, and go on from there."""
        identity = self.source.identity()
        self.source.close()
        if callable(meanwhile):
            meanwhile()
        self.source = self.made()
        self.source.open(self.positions, identity)

    def write(self, name: str, *lines: str) -> None:
        with (self.path / name).open("ab") as file:
            file.write("".join(f"{line}\n" for line in lines).encode())

    def rename(self, name: str, other: str) -> None:
        (self.path / name).rename(self.path / other)

    def copy_and_cut(self, name: str, other: str) -> None:
        (self.path / other).write_bytes((self.path / name).read_bytes())
        os.truncate(self.path / name, 0)

    def read(self) -> list[tuple[str, int, str]]:
        """All there is: name and number of the partition, and line."""
        found = []
        empty = 0
        while empty < 2:  # one look, at least, since the last line
            self.source._next_search = 0.0
            polled = self.source.poll(0.0)
            empty = 0 if polled else empty + 1
            for records in polled:
                where = records.partition
                assert records.end > self.positions.get(where, 0)
                self.positions[where] = records.end
                name = os.path.relpath(where.topic, self.path)
                found += [(name, where.number, (value or b"").decode()) for value in records.values]
        return found

    def lines(self) -> list[str]:
        return [line for _, _, line in self.read()]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    one = Folder(tmp_path)
    yield one
    one.source.close()


def test_the_search_for_files_takes_a_share_of_the_time(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("a.log", "a1")
    assert folder.open().lines() == ["a1"]
    now = [1000.0]
    catalog = folder.source._catalog
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(catalog, "discover", lambda: now.append(now.pop() + 1.0))
    for _ in range(3):
        begun = now[0] = folder.source._next_search + 1000.0
        assert folder.source.poll(0.0) == []
        assert now[0] == begun + 1.0
        assert folder.source._next_search == pytest.approx(now[0] + 1.0 / file.SEARCH_SHARE)


@pytest.mark.parametrize("down", [False, True])
def test_new_files_come_after_known_ones(folder: Folder, *, down: bool) -> None:
    folder.write("b.log", "b1")
    folder.open()
    assert folder.read() == [("b.log", 0, "b1")]

    def more() -> None:
        folder.write("c.log", "c1", "c2")
        folder.write("a.log", "a1")
        folder.write("b.log", "b2")
        folder.write("other.txt", "no")

    if down:
        folder.restart(more)
    else:
        more()
    assert folder.read() == [
        ("b.log", 0, "b2"), ("a.log", 0, "a1"), ("c.log", 0, "c1"), ("c.log", 0, "c2"),
    ]  # fmt: skip
    folder.write("a.log", "a2")  # all of them are followed
    folder.write("b.log", "b3")
    folder.write("c.log", "c3")  # it was read last, and is read on
    assert folder.read() == [("c.log", 0, "c3"), ("b.log", 0, "b3"), ("a.log", 0, "a2")]
    assert not folder.source.ended()


def test_the_first_file_may_appear_later(folder: Folder) -> None:
    folder.open()
    assert folder.read() == []
    assert "waiting" in folder.reports[0]
    folder.write("a.log", "a1")
    assert folder.read() == [("a.log", 0, "a1")]


def test_other_paths_are_read_as_without_a_glob(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "once.txt", "*.log", "last.txt")
    folder.write("once.txt", "o1")
    with pytest.raises(SourceNotFoundError, match=r"last\.txt"):
        folder.open()
    folder.write("last.txt", "l1")
    folder.open()
    assert folder.lines() == ["o1", "l1"]
    folder.write("once.txt", "o2")
    folder.write("new.log", "n1")
    folder.write("last.txt", "l2")
    assert folder.lines() == ["l2", "n1"]
    folder.source.close()


def test_incomplete_lines_are_not_read(folder: Folder) -> None:
    (folder.path / "a.log").write_bytes(b"one\ntw")
    folder.open()
    folder.write("b.log", "b1")
    assert folder.lines() == ["one", "b1"]
    folder.restart()
    folder.write("a.log", "o", "three")
    assert folder.lines() == ["two", "three"]


@pytest.mark.parametrize("way", ["renamed", "copied"])
@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("name", ["a.log.1", "a.1"])  # one the glob matches, and one not
def test_a_rotated_file_is_not_read_twice(
    folder: Folder, way: str, name: str, *, down: bool
) -> None:
    folder.write("a.log", "h", "a1")
    folder.open()
    assert folder.lines() == ["h", "a1"]
    folder.write("a.log", "a2")
    rotate = folder.rename if way == "renamed" else folder.copy_and_cut

    def rotated() -> None:
        rotate("a.log", name)
        folder.write("a.log", "h", "a3")  # it begins alike

    if down:
        folder.restart(rotated)
    else:
        rotated()
    assert folder.read() == [("a.log", 0, "a2"), ("a.log", 1, "h"), ("a.log", 1, "a3")]
    folder.restart()
    folder.write("a.log", "a4")
    assert folder.read() == [("a.log", 1, "a4")]


@pytest.mark.parametrize("down", [False, True])
def test_a_chain_of_rotated_files(folder: Folder, *, down: bool) -> None:
    """Each takes the name of the next one; the last one goes."""
    folder.open()
    wanted, found = [], []
    for i in range(12):
        folder.write("a.log", *(f"{i}-{k}" for k in range(i % 4)))
        wanted += [f"{i}-{k}" for k in range(i % 4)]
        if i % 3:
            found += folder.lines()

        def rotate(i: int = i) -> None:
            names = ["a.log", "a.log.1", "a.log.2", "a.log.3"]
            for old, new in reversed(list(pairwise(names))):
                if (folder.path / old).exists():
                    folder.rename(old, new)
            folder.write("a.log", f"first of {i}")

        if i % 3:
            if down:
                folder.restart(rotate)
            else:
                rotate()
            wanted.append(f"first of {i}")
    found += folder.lines()
    assert found == wanted


def test_a_renamed_file_without_successor(folder: Folder) -> None:
    folder.write("a.log", "a1")
    folder.open()
    assert folder.lines() == ["a1"]

    def rename() -> None:
        folder.write("a.log", "a2")
        folder.rename("a.log", "z.log")

    folder.restart(rename)
    assert folder.read() == [("a.log", 0, "a2")]
    folder.write("z.log", "a3")
    folder.write("a.log", "new")
    assert folder.read() == [("a.log", 0, "a3"), ("a.log", 1, "new")]


@pytest.mark.parametrize("down", [False, True])
def test_a_removed_file(folder: Folder, *, down: bool) -> None:
    folder.write("a.log", "a1")
    folder.write("b.log", "b1")
    folder.open()
    assert folder.lines() == ["a1", "b1"]
    remove = (folder.path / "a.log").unlink
    if down:
        folder.restart(remove)
        assert f"{folder.path / 'a.log'}" in folder.reports[-1]
    else:
        remove()
    assert folder.lines() == []
    folder.write("a.log", "new")
    assert folder.read() == [("a.log", 1, "new")]
    folder.restart()
    folder.write("a.log", "more")
    assert folder.read() == [("a.log", 1, "more")]


def test_a_removed_file_that_is_created_again_while_not_read(folder: Folder) -> None:
    folder.write("a.log", "a1")
    folder.write("b.log", "b1")
    folder.open()
    assert folder.lines() == ["a1", "b1"]
    (folder.path / "a.log").unlink()
    assert folder.lines() == []
    folder.restart(lambda: folder.write("a.log", "new", "and more"))
    assert folder.read() == [("a.log", 1, "new"), ("a.log", 1, "and more")]


def test_a_position_in_an_unknown_file(folder: Folder) -> None:
    """As --skip-to gives it."""
    folder.write("a.log", "a1", "a2")
    folder.positions[Partition(str(folder.path / "a.log"))] = 3
    folder.open()
    assert folder.read() == [("a.log", 0, "a2")]


def test_a_removed_file_is_read_to_its_end(folder: Folder) -> None:
    folder.write("a.log", "a1")
    folder.write("b.log", "b1")
    folder.open()
    assert folder.lines() == ["a1", "b1"]
    folder.write("a.log", "a2")
    (folder.path / "a.log").unlink()
    assert folder.lines() == ["a2"]


def test_one_of_many_files_is_removed_before_it_was_read(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_inventory, "MAX_OPEN", 0)  # more than are kept open
    folder.write("a.log", *"1234")
    folder.write("b.log", "b1")
    folder.open()
    first = folder.source.poll(0.0)
    assert [value for records in first for value in records.values] == [b"1", b"2", b"3"]
    (folder.path / "b.log").unlink()
    assert folder.lines() == ["4"]
    assert "b.log is ignored" in folder.reports[-1]
    folder.write("b.log", "b2")
    assert folder.lines() == ["b2"]


def test_a_file_that_was_replaced_while_not_read_is_refused(folder: Folder) -> None:
    folder.write("a.log", "a1")
    folder.open()
    assert folder.lines() == ["a1"]

    def replace() -> None:
        (folder.path / "a.log").unlink()
        folder.write("another.txt", "takes the place on the disk")
        folder.write("a.log", "b1")

    with pytest.raises(SourceChangedError, match=r"a\.log"):
        folder.restart(replace)


def test_links_to_a_file_are_that_file(folder: Folder) -> None:
    folder.write("a.log", "a1")
    (folder.path / "b.log").symlink_to("a.log")
    (folder.path / "c.log").hardlink_to(folder.path / "a.log")
    folder.open()
    assert folder.lines() == ["a1"]
    folder.write("d.log", "d1")
    (folder.path / "b.log").unlink()
    (folder.path / "b.log").symlink_to("d.log")
    folder.write("a.log", "a2")
    assert folder.lines() == ["a2", "d1"]
    folder.restart()
    assert folder.lines() == []


def test_compressed_files_are_ignored(folder: Folder) -> None:
    folder.write("a.log.2.gz", "not even compressed")
    folder.write("a.log", "a1")
    folder.open()
    assert folder.lines() == ["a1"]
    assert sum("a.log.2.gz is ignored" in text for text in folder.reports) == 1


def test_types_are_inferred_from_the_existing_files(tmp_path: Path) -> None:
    """Of one with fewer lines than are waited for, others do not wait."""
    source = Files([str(tmp_path / "*.csv")], follow=True, first=10, delimiter=",")
    (tmp_path / "a.csv").write_bytes(b"x,y\n1,2\n")
    source.open({}, None)
    assert source.poll(0.0) == []
    (tmp_path / "b.csv").write_bytes(b"3,4\n")
    found = []
    for _ in range(20):
        source._next_search = 0.0
        found += [value for records in source.poll(0.0) for value in records.values]
    assert found[:2] == [b"x,y", b"1,2"]
    source.close()


@pytest.mark.parametrize("kept_open", [0, 2, 256])
@pytest.mark.parametrize("seed", range(6))
def test_random_changes_of_files_lose_no_line(
    seed: int, kept_open: int, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line comes once, those of a file in their order."""
    monkeypatch.setattr(file_inventory, "MAX_OPEN", kept_open)
    life = Life(folder, random.Random(seed))
    folder.open()
    for _ in range(150):
        life.step()
    life.read()
    found = life.found
    assert sorted(line for _, _, line in found) == sorted(life.written)
    for where in {(name, number) for name, number, _ in found}:
        numbers = [int(line.split()[1]) for *there, line in found if tuple(there) == where]
        assert numbers == sorted(numbers)


class Life:
    """Three logs that are written, rotated and forgotten by chance."""

    def __init__(self, folder: Folder, draw: random.Random) -> None:
        self.folder, self.draw = folder, draw
        self.written: list[str] = []
        self.found: list[tuple[str, int, str]] = []
        self.rotated: list[str] = []  # since all was read

    def step(self) -> None:
        app = self.draw.choice(["a.log", "b.log", "c.log"])
        lot = self.draw.random()
        if lot < 0.4:
            self.write(app)
        elif lot < 0.55:
            self.rotate(app)
        elif lot < 0.6:
            self.read()
            self.remove()
        elif lot < 0.7:
            self.folder.restart(lambda: self.write(app))
        else:
            self.read()

    def write(self, app: str) -> None:
        lines = [f"{app} {len(self.written) + k}" for k in range(self.draw.randrange(5))]
        self.written += lines
        self.folder.write(app, *lines)

    def read(self) -> None:
        self.found += self.folder.read()
        self.rotated = []

    def rotate(self, app: str) -> None:
        """Once between two looks: what was between two rotations would be lost."""
        path = self.folder.path / app
        if app in self.rotated or not path.exists():
            return
        self.rotated.append(app)
        self.folder.stamp += 1
        other = f"{app}-{self.folder.stamp:04}"
        if self.draw.random() < 0.3 and path.stat().st_size:
            self.folder.copy_and_cut(app, other)
        else:
            self.folder.rename(app, other)
        self.write(app)

    def remove(self) -> None:
        """Some of the rotated files, of which all was read."""
        for path in self.folder.path.glob("*.log-*"):
            live = self.folder.path / path.name[:5]
            if self.draw.random() < 0.5 and live.stat().st_size:
                path.unlink()


def test_a_link_to_a_file_is_not_read_twice(folder: Folder) -> None:
    folder.write("day-1.log", "one")
    (folder.path / "current.log").symlink_to("day-1.log")
    folder.open()
    assert folder.lines() == ["one"]
    folder.write("day-2.log", "two")
    (folder.path / "current.log").unlink()
    (folder.path / "current.log").symlink_to("day-2.log")
    assert folder.lines() == ["two"]
    folder.restart()
    folder.write("day-2.log", "three")
    assert folder.lines() == ["three"]


def lines_run(folder: Path, files: int) -> int:
    """How many lines of the inventory run when that many files are found, and after a restart."""
    folder.mkdir()
    one, count = Folder(folder), 0

    def write(name: str) -> None:
        for i in range(files):
            one.write(f"{name}{i}.log", f"{name} {i}")

    traced = {file_inventory.__file__, fingerprints.__file__, rotation.__file__}

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal count
        count += event == "line"
        return trace if frame.f_code.co_filename in traced else None

    write("old")
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        one.open().read()
        one.restart(partial(write, "new"))
        one.source.lag()
    finally:
        sys.settrace(before)
    one.source.close()
    return count


def test_the_time_to_find_files_grows_with_their_number(tmp_path: Path) -> None:
    few, many = lines_run(tmp_path / "few", 20), lines_run(tmp_path / "many", 80)
    assert many < 6 * few  # it was 40 times as many
