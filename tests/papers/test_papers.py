"""What the papers claim comes out of every experiment, on small generated data."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from PIL import Image

from benchmarks.data import HOME
from benchmarks.papers.__main__ import experiments
from benchmarks.papers.finding import Finding

KNOWN = dict(experiments())


@pytest.mark.parametrize("name", KNOWN)
def test_claims_come_out(name: str) -> None:
    finding: Any = KNOWN[name](HOME, quick=True)
    assert finding.claims
    assert all(len(row) == len(finding.head) for row in finding.rows)
    assert [claim for claim, true in finding.claims.items() if not true] == []
    # not rendered: that would take longer than all the rest
    figure = Figure(figsize=finding.size)
    finding.draw(figure)
    assert all(axes.has_data() or not axes.axison for axes in figure.axes)


def test_a_finding_is_a_table_and_a_picture(tmp_path: Path) -> None:
    def draw(figure: Figure) -> None:
        figure.subplots().plot([1, 2], [2, 1])

    rows = [["a9a", "0.35"]]
    finding = Finding("Title", ["data", "loss"], rows, {"it fell": True}, draw, size=(4.0, 3.0))
    assert finding.text() == (
        "## Title\n\n| data | loss |\n| --- | --- |\n| a9a | 0.35 |\n\n- yes: it fell\n"
    )
    finding.save(tmp_path / "picture.png")
    with Image.open(tmp_path / "picture.png") as picture:
        assert picture.size == (400, 300)
