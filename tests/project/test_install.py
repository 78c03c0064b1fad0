"""The installed package is imported, whatever directories are next to a script."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import streamlearn as sl

if TYPE_CHECKING:
    from pathlib import Path


def test_a_script_next_to_a_clone_imports_the_installed_package(tmp_path: Path) -> None:
    (tmp_path / "streamlearn" / "streamlearn").mkdir(parents=True)
    script = tmp_path / "script.py"
    script.write_text("import streamlearn\nprint(streamlearn.__file__)\n")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == sl.__file__
