"""Which file is which: copies, and files that are truncated meanwhile."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from streamlearn.stream.sources import rotation


@pytest.mark.parametrize(
    ("text", "copy", "same"),
    [
        (b"abcdef", b"abc", True),
        (b"abcdef", b"abcdef", True),
        (b"abcdef", b"", True),
        (b"abcdef", b"abx", False),
        (b"abcdef", b"abcxef", False),
    ],
)
def test_a_file_begins_with_its_copy(
    text: bytes, copy: bytes, same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(text)
    (tmp_path / "copy").write_bytes(copy)
    for block in (2, 3, rotation.BLOCK):
        monkeypatch.setattr(rotation, "BLOCK", block)
        assert rotation.begins_with(str(tmp_path / "file"), str(tmp_path / "copy")) == same


def test_a_file_that_is_truncated_meanwhile_was_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copied, then truncated: what the log's writer does between two reads of the comparison."""
    (tmp_path / "file").write_bytes(b"abcdef")
    (tmp_path / "copy").write_bytes(b"abcdef")
    monkeypatch.setattr(rotation, "BLOCK", 2)
    opened = Path.open

    def open_then_truncate(path: Path, mode: str) -> Any:
        found = opened(path, mode, buffering=0)
        if path.name == "copy":
            os.truncate(tmp_path / "file", 3)
        return found

    monkeypatch.setattr(Path, "open", open_then_truncate)
    assert rotation.begins_with(str(tmp_path / "file"), str(tmp_path / "copy"))
