"""Pictures of a tested model: axes that hold what is drawn, and fit it."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn import metrics

from streamlearn.cli.main import main
from streamlearn.cli.report import axes, panels
from streamlearn.cli.report.charts import MOST_POINTS, Chart, few
from streamlearn.quality.ranking import groups_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlearn.core.arrays import Array

BESIDE = {"ideal", "whiskers"}  # which need not be inside
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

    def recorded(name: str, draw: Any) -> Any:
        def recording(chart: Chart, x: Array, y: Array, *more: Any) -> None:
            kind = "whiskers" if name == "whiskers" else str(more[-1])
            found.append((chart, kind, x, y))
            draw(chart, x, y, *more)

        return recording

    for name in ("line", "area", "dots", "whiskers"):
        monkeypatch.setattr(Chart, name, recorded(name, getattr(Chart, name)))
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
    charts = {id(chart): chart for chart, kind, _, _ in drawn if kind not in BESIDE}
    assert len(charts) == (4 if label == "number" else 6)
    for chart in charts.values():
        mine = [(x, y) for other, kind, x, y in drawn if other is chart and kind not in BESIDE]
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


def test_long_numbers_are_short() -> None:
    texts = {0.0: "0", 9999.0: "9999", 10_000.0: "10k", -10_000.0: "-10k", 999_999.0: "1000k"}
    texts |= {1e6: "1M", -2.5e9: "-2.5G", 1e9: "1G", 0.123456: "0.1235", 1e-13: "0"}
    assert {number: axes.short(number) for number in texts} == texts


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


def numbers(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?[\d.]+", text)]


def line_through(points: list[tuple[float, float]]) -> Array:
    x, y = np.transpose(points)
    found: Array = np.polyfit(x, y, 1)
    return found


@pytest.mark.parametrize("odds", [False, True])
def test_marks_are_where_the_ticks_say(*, odds: bool) -> None:
    x = axes.log_odds("p", 0.003, 0.9) if odds else axes.linear("x", -20.0, 35.0)
    chart = Chart(x, axes.linear("y", 2.0, 9.0))
    across = np.array([0.005, 0.1, 0.8]) if odds else np.array([-13.0, 0.0, 30.0])
    low, high = np.array([3.0, 8.5, 4.0]), np.array([5.0, 8.75, 9.0])
    chart.line(across, low, "first")
    chart.area(across, low, "first")
    chart.dots(across, low, ["a", "b<", "c"], "first")
    chart.whiskers(across, low, high, "first")
    svg = chart.svg("a 'label'")
    ticks = re.findall(r'<text class="tick (end|middle)" x="([\d.]+)" y="([\d.]+)">([^<]+)<', svg)
    places = {"middle": [], "end": []}  # type: dict[str, list[tuple[float, float]]]
    for kind, right, down, text in ticks:
        number = float(text)
        if kind == "middle":
            places[kind].append(
                (float(right), float(axes.logit(np.array(number))) if odds else number)
            )
        else:
            places[kind].append((float(down) - 4.0, number))  # of the line through the text
    grid = [float(down) for down in re.findall(r'class="grid"[^>]*y1="([\d.]+)"', svg)]
    assert grid == pytest.approx([down for down, _ in places["end"]])
    scales = {kind: line_through(found) for kind, found in places.items()}
    for kind, found in places.items():
        pixels, values = np.transpose(found)
        assert np.polyval(scales[kind], pixels) == pytest.approx(
            values, abs=0.15 * abs(scales[kind][0])
        )

    def read(pixels: list[float]) -> Array:
        """The numbers of points, by the ticks."""
        points = np.reshape(pixels, (-1, 2))
        found = np.column_stack(
            [np.polyval(scales["middle"], points[:, 0]), np.polyval(scales["end"], points[:, 1])]
        )
        return np.column_stack([1.0 / (1.0 + np.exp(-found[:, 0])), found[:, 1]]) if odds else found

    [line] = re.findall(r'<polyline class="line first" points="([^"]+)"', svg)
    assert read(numbers(line)) == pytest.approx(np.column_stack([across, low]), rel=0.01, abs=0.03)
    [area] = re.findall(r'<polygon class="area first" points="([^"]+)"', svg)
    corners = np.column_stack([[*across, across[-1], across[0]], [*low, 2.0, 2.0]])
    assert read(numbers(area)) == pytest.approx(corners, rel=0.01, abs=0.03)
    dots = re.findall(r'<circle class="dot first" cx="([\d.]+)" cy="([\d.]+)"', svg)
    assert read([float(one) for dot in dots for one in dot]) == pytest.approx(read(numbers(line)))
    assert re.findall(r"<title>([^<]+)</title>", svg) == ["a", "b&lt;", "c"]
    for number, (x1, x2, y1, y2) in enumerate(
        re.findall(r'"whisker first" x1="([\d.]+)" x2="([\d.]+)" y1="([\d.]+)" y2="([\d.]+)"', svg)
    ):
        ends = read(list(map(float, (x1, y1, x2, y2))))
        assert ends == pytest.approx(
            np.array([[across[number], low[number]], [across[number], high[number]]]),
            rel=0.01,
            abs=0.03,
        )
    assert 'aria-label="a &#x27;label&#x27;"' in svg
    size = numbers(re.findall(r'viewBox="([^"]+)"', svg)[0])
    for right, down in re.findall(r'x="([\d.]+)" y="([\d.]+)"', svg):
        assert 0.0 <= float(right) <= size[2]
        assert 0.0 <= float(down) <= size[3]


@pytest.mark.parametrize("count", [1, 2, MOST_POINTS, MOST_POINTS + 1, 5 * MOST_POINTS])
def test_a_long_line_keeps_its_ends(count: int) -> None:
    x, y = few(np.arange(count), np.arange(count) ** 2)
    assert len(x) == min(count, MOST_POINTS)
    assert (x[0], x[-1]) == (0, count - 1)
    assert (y == x**2).all()


def marks(drawn: list[tuple[Chart, str, Array, Array]], kind: str) -> list[Array]:
    """The points of the marks of a kind."""
    return [np.column_stack([x, y]) for _, other, x, y in drawn if other == kind]


def test_curves_are_those_of_scikit_learn(
    drawn: list[tuple[Chart, str, Array, Array]],
) -> None:
    draw = np.random.default_rng(0)
    scores = draw.normal(size=200).round(1)
    positive = scores + draw.normal(size=200) > 1.0
    weights = draw.integers(1, 4, size=200).astype(float)
    probability = 1.0 / (1.0 + np.exp(1.0 - scores))
    groups = groups_of(scores, positive, probability, weights)
    panels.roc(groups)
    false, true, _ = metrics.roc_curve(
        positive, scores, sample_weight=weights, drop_intermediate=False
    )
    [curve, same] = marks(drawn, "first")
    assert curve == pytest.approx(np.column_stack([false, true])) == same
    assert marks(drawn, "ideal")[0].tolist() == [[0.0, 0.0], [1.0, 1.0]]
    drawn.clear()
    panels.recall(groups)
    precision, recall, _ = metrics.precision_recall_curve(positive, scores, sample_weight=weights)
    expected = np.column_stack([recall, precision])[::-1]
    [curve, same] = marks(drawn, "first")
    assert curve == pytest.approx(expected[expected[:, 0] > 0.0]) == same
    base = np.average(positive, weights=weights)
    assert marks(drawn, "ideal")[0] == pytest.approx(np.array([[0.0, base], [1.0, base]]))
    drawn.clear()
    panels.reliability(groups)
    [dots], [whiskers] = marks(drawn, "first"), marks(drawn, "whiskers")
    assert dots[:, 0].tolist() == sorted(dots[:, 0])
    assert dots[0, 0] < np.average(probability, weights=weights) < dots[-1, 0]
    ends = marks(drawn, "ideal")[0]
    assert (ends[:, 0] == ends[:, 1]).all()
    assert ends[0, 0] < dots[:, 0].min()
    assert ends[1, 0] == 1.0
    assert (whiskers[:, 1] <= dots[:, 1]).all()


def test_training_is_drawn_as_it_is_saved(drawn: list[tuple[Chart, str, Array, Array]]) -> None:
    history = [{"events": 10 * 4**k, "loss": 0.7 / (1 + k)} for k in range(5)]
    panels.training(history)
    [line] = marks(drawn, "first")
    assert line.tolist() == [[one["events"], one["loss"]] for one in history]
    [(chart, *_)] = drawn
    assert [place for place, _ in chart.x.ticks] == [1.0, 2.0, 3.0]
    assert [text for _, text in chart.x.ticks] == ["10", "100", "1000"]
    assert chart.x.share(np.array([10.0, 2560.0])).tolist() == [0.0, 1.0]
    assert panel_titles([{"events": 1, "loss": 1.0}] * 3) == []
    assert panel_titles(history) == ["Training"]


def panel_titles(history: list[Any]) -> list[str]:
    """The titles of the panels for a history, without those of the model's quality."""
    tested: Any = SimpleNamespace(
        quality=SimpleNamespace(facts=dict),
        importance=SimpleNamespace(shares=dict),
        losses=SimpleNamespace(means=lambda: (np.array([10.0]), np.array([0.5]))),
    )
    return [one.title for one in panels.panels(tested, {"history": history})][1:]


@pytest.mark.parametrize("constant", [None, 0.2, 0.9])
@pytest.mark.parametrize("segments", [1, 3])
def test_losses_are_drawn_beside_that_of_the_constant(
    drawn: list[tuple[Chart, str, Array, Array]], constant: float | None, segments: int
) -> None:
    ends, means = np.arange(1.0, segments + 1) * 100.0, np.linspace(0.6, 0.5, segments)
    tested: Any = SimpleNamespace(
        quality=SimpleNamespace(facts=lambda: {"constant's loss": constant}),
        losses=SimpleNamespace(means=lambda: (ends, means)),
    )
    panel = panels.losses(tested)
    [line] = marks(drawn, "first")
    assert line.tolist() == (
        [[0.0, 0.6], [100.0, 0.6]] if segments == 1 else np.column_stack([ends, means]).tolist()
    )
    ideal = [one.tolist() for one in marks(drawn, "ideal")]
    assert ideal == ([] if constant is None else [[[0.0, constant], [ends[-1], constant]]])
    assert ("best constant" in panel.body) == (constant is not None)
    assert drawn[0][0].y.high == pytest.approx(1.05 * max(0.6, constant or 0.0))
    assert (drawn[0][0].x.low, drawn[0][0].x.high) == (0.0, ends[-1])


def test_distributions_are_those_of_numpy(drawn: list[tuple[Chart, str, Array, Array]]) -> None:
    draw = np.random.default_rng(0)
    places, weight = np.sort(draw.normal(size=5000)), draw.integers(1, 3, size=5000).astype(float)
    quality: Any = SimpleNamespace(residuals=lambda: (places, weight))
    panels.residuals(quality)
    [area, line] = marks(drawn, "first")
    axis = drawn[0][0].x
    assert (axis.low, axis.high) == pytest.approx(tuple(np.quantile(places, panels.TAILS)), abs=0.1)
    within = (places > axis.low) & (places < axis.high)
    inside = np.histogram(
        places[within], panels.SCORE_BINS, (axis.low, axis.high), weights=weight[within]
    )
    middle = (inside[1][1:] + inside[1][:-1]) / 2.0
    expected = np.column_stack([middle, inside[0] / weight.sum()])
    assert line == pytest.approx(expected) == area


def test_predictions_are_drawn_with_room(drawn: list[tuple[Chart, str, Array, Array]]) -> None:
    columns = np.ones(3), np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.5, 10.0])
    quality: Any = SimpleNamespace(by_prediction=lambda: columns)
    panels.predictions(quality)
    [dots] = marks(drawn, "first")
    assert dots.tolist() == [[1.0, 0.0], [2.0, 2.5], [3.0, 10.0]]
    assert marks(drawn, "ideal")[0].tolist() == [[0.0, 0.0], [10.0, 10.0]]
    chart = drawn[0][0]
    for axis in (chart.x, chart.y):
        assert (axis.low, axis.high) == pytest.approx((-0.5, 10.5))


def test_confusion_has_recall_and_precision() -> None:
    table = np.array([[8.0, 2.0], [0.0, 0.0]])
    quality: Any = SimpleNamespace(confusion=table, model=SimpleNamespace(labels=["a<", "b"]))
    body = panels.confusion(quality).body
    cells = re.findall(r'<td(?: class="([a-z]*)")?>([^<]*)</td>', body)
    assert cells == [
        ("right", "8"), ("", "2"), ("", "80.0%"), ("", "0"), ("right", "0"), ("", "-"),
        ("", "100.0%"), ("", "0.0%"), ("", ""),
    ]  # fmt: skip
    assert re.findall(r"<th>([^<]*)</th>", body) == [
        "",
        "a&lt;",
        "b",
        "recall",
        "a&lt;",
        "b",
        "precision",
    ]
