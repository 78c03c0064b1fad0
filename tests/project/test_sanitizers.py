"""The native readers of formats, compiled for sanitizers, read damaged records."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_damaged_records_under_sanitizers() -> None:
    done = subprocess.run(
        [ROOT / ".ci" / "sanitize"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
