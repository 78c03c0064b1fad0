"""What the papers claim comes out of every experiment, on small generated data."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.data import HOME
from benchmarks.papers.__main__ import experiments

KNOWN = dict(experiments())


@pytest.mark.parametrize("name", KNOWN)
def test_claims_come_out(name: str, tmp_path: Path) -> None:
    finding: Any = KNOWN[name](HOME, quick=True)
    assert finding.claims
    assert all(len(row) == len(finding.head) for row in finding.rows)
    assert [claim for claim, true in finding.claims.items() if not true] == []
    finding.save(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1_000
