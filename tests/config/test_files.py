"""Which files can be read and written is known before anything is done."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from streamlearn.config.files import expanded, matches, require_files, require_writable
from tests.support.refusals import raised, unreached


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of each kind in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv", "day/c.csv"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("1")
    os.mkfifo("pipe")
    Path("link").symlink_to("a.csv")
    Path("new").symlink_to("later.csv")
    Path("loop").symlink_to("loop")
    # root may write anywhere
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name != "day")


UNREADABLE = ["none.csv", "*.txt", "day", "pipe", "loop"]
UNWRITABLE = [
    ("loop", []),
    ("day", []),
    ("none/out", []),
    ("day/out", []),
    ("a.csv", ["a.csv"]),
    ("link", ["a.csv"]),
    ("a.csv", ["*.csv"]),
    ("out.csv", ["*.csv"]),
    ("out.csv", ["**/*.csv"]),
]


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=name.replace("*", r"\*")):
        require_files(["a.csv", name])


def test_what_can_be_read() -> None:
    require_files(["-", "a.csv", "link", "*.csv", "day/*", "**/c.csv"])
    assert expanded(["-", "*.csv", "day/*", "*.txt"]) == [
        "-",
        "a.csv",
        "b.csv",
        "day/c.csv",
        "*.txt",
    ]


@pytest.mark.parametrize(("path", "read"), UNWRITABLE)
def test_what_cannot_be_written_is_refused_by_its_option(path: str, read: list[str]) -> None:
    with pytest.raises(ValueError, match="--out"):
        require_writable(path, "--out", read)


@pytest.mark.parametrize("path", ["out.csv", "a.csv", "link", "new", "pipe", "/dev/null"])
def test_what_can_be_written(path: str) -> None:
    require_writable(path, "--out", ["b.csv", "day/*.csv"])


def test_a_pattern_of_a_directory_matches_at_its_depth() -> None:
    assert matches("day/*", Path("day/x"))
    assert not matches("day/*", Path("day/x/y"))
    assert not matches("day/*", Path("x"))
    assert matches("**/x", Path("day/of/x"))


def test_every_refusal_has_a_row() -> None:
    reached = set()
    for name in UNREADABLE:
        reached |= raised(partial(require_files, [name]), ValueError)
    for path, read in UNWRITABLE:
        reached |= raised(partial(require_writable, path, "--out", read), ValueError)
    assert unreached(["streamlearn.config.files"], reached) == set()
