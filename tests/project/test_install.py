"""The package is found as it was installed, whatever folders lie beside a script."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import streamlearn as sl

if TYPE_CHECKING:
    from pathlib import Path


def test_beside_a_clone_the_package_is_found_and_not_the_clones_folder(tmp_path: Path) -> None:
    (tmp_path / "streamlearn" / "streamlearn").mkdir(parents=True)
    script = tmp_path / "script.py"
    script.write_text("import streamlearn\nprint(streamlearn.__file__)\n")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == sl.__file__
