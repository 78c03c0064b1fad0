"""Pictures of a tested model: axes that hold what is drawn, and fit it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from streamlearn.cli.main import main
from streamlearn.cli.report import axes, panels
from streamlearn.cli.report.charts import Chart
from streamlearn.quality.ranking import groups_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlearn.core.arrays import Array

LABELS: dict[str, Callable[[float, float], Any]] = {
    "rare": lambda x, noise: bool(x + noise > 2.5),
    "even": lambda x, noise: bool(x + noise > 0.0),
    "flat": lambda _, noise: bool(noise > 0.0),
    "number": lambda x, noise: 30.0 + x + 0.1 * noise,
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Chart, str, Array, Array]]:
    """What is drawn into charts."""
    found: list[tuple[Chart, str, Array, Array]] = []

    def recorded(draw: Any) -> Any:
        def recording(chart: Chart, x: Array, y: Array, *more: Any) -> None:
            found.append((chart, str(more[-1]), x, y))
            draw(chart, x, y, *more)

        return recording

    for name in ("line", "area", "dots"):
        monkeypatch.setattr(Chart, name, recorded(getattr(Chart, name)))
    return found


def place(axis: axes.Axis, values: Array) -> Array:
    """Return values as shares of the axis, also outside of it."""
    places: Array = (axis.scale(np.asarray(values, dtype=float)) - axis.low) / (
        axis.high - axis.low
    )
    return places


@pytest.mark.parametrize("label", LABELS)
def test_axes_hold_what_is_drawn_and_fit_it(
    label: str, tmp_path: Path, drawn: list[tuple[Chart, str, Array, Array]]
) -> None:
    draw = np.random.default_rng(0)
    rows = [
        {"x": x, "y": LABELS[label](x, noise)} for x, noise in draw.normal(size=(3000, 2)).tolist()
    ]
    path, model = tmp_path / "rows.jsonl", tmp_path / "a.model"
    path.write_text("\n".join(map(json.dumps, rows)))
    main(["train", str(path), "--label", "y", "--save", str(model)])
    assert main(["test", str(model), str(path), "--report", str(tmp_path / "page.html")]) == 0
    charts = {id(chart): chart for chart, kind, _, _ in drawn if kind != "ideal"}
    assert len(charts) == (4 if label == "number" else 6)
    for chart in charts.values():
        mine = [(x, y) for other, kind, x, y in drawn if other is chart and kind != "ideal"]
        x, y = (np.concatenate(parts) for parts in zip(*mine, strict=True))
        for axis, values in ((chart.x, x), (chart.y, y)):
            # no logarithm has a place for a share of 0
            places = place(axis, values[values > 0.0] if axis.scale is axes.logit else values)
            assert places.min() > -1e-9
            assert places.max() < 1.0 + 1e-9
            assert any(axis.low <= at <= axis.high for at, _ in axis.ticks)
    for chart in charts.values():
        if chart.y.title == "loss":  # it begins at 0, and ends above the highest
            highest = max(float(y.max()) for other, _, _, y in drawn if other is chart)
            assert chart.y.low == 0.0
            assert 0.9 < place(chart.y, np.array(highest)) < 1.0


def test_an_axis_of_one_number_has_it_in_the_middle() -> None:
    for number in (0.0, 5.0, -2e6):
        axis = axes.linear("x", number, number)
        assert axis.share(np.array([number])) == pytest.approx(0.5)
        assert len(axis.ticks) >= 2
    odds = axes.log_odds("p", 0.3, 0.3)
    assert odds.share(np.array([0.3])) == pytest.approx(0.5)


@pytest.mark.parametrize("fields", [panels.MOST_FIELDS, panels.MOST_FIELDS + 1])
def test_the_least_important_fields_are_one_row(fields: int) -> None:
    class Shares:
        importance = property(lambda self: self)

        def shares(self) -> dict[str, float]:
            return {f"f{k}": 1.0 / fields for k in range(fields)}

    [panel] = panels.importance(Shares())  # type: ignore[arg-type]
    names = [f"f{k}<" in panel.body for k in range(fields)]
    assert sum(names) == panels.MOST_FIELDS
    assert ("1 other field" in panel.body) == (fields > panels.MOST_FIELDS)


def test_a_page_does_not_grow_with_the_events() -> None:
    draw = np.random.default_rng(0)
    sizes = []
    for n in (1_000, 50_000):
        scores, positive = draw.normal(size=n), draw.random(n) < 0.5
        groups = groups_of(scores, positive, 1.0 / (1.0 + np.exp(-scores)), np.ones(n))
        sizes.append(len(panels.roc(groups).body) + len(panels.recall(groups).body))
    assert sizes[1] < 1.5 * sizes[0]
