"""What the page of a tested model says in words: only what is known, with its numbers."""

from __future__ import annotations

import pytest

from streamlearn.cli.report.words import sentences

SAID: list[tuple[dict[str, float | None], list[list[str]]]] = [
    ({}, []),
    ({"loss": 0.3, "constant's loss": 0.4}, [["25%", "0.3", "0.4"]]),
    ({"loss": 0.3, "constant's loss": None}, []),
    ({"loss": 0.3, "constant's loss": 0.0}, []),
    ({"ROC area": 0.875}, [["87.5%"]]),
    ({"ROC area": None}, []),
    ({"calibration ratio": 1.1, "calibration error": 0.025}, [["10.0%", "2.5"]]),
    ({"calibration ratio": 0.9, "calibration error": 0.025}, [["10.0%", "2.5"]]),
    ({"calibration ratio": 1.0, "calibration error": 0.025}, [["2.5"]]),
    ({"calibration ratio": None, "calibration error": 0.025}, []),
    ({"calibration ratio": 1.0, "calibration error": None}, []),
    ({"error rate": 0.125, "constant's error rate": 0.5}, [["12.5%", "50.0%"]]),
    ({"error rate": 0.125, "constant's error rate": 0.5, "ROC area": 0.5}, [["50.0%"]]),
    ({"MAE": 1.5, "mean's MAE": 3.0}, [["1.5", "3"]]),
    ({"R2": 0.25}, [["25.0%"]]),
    ({"R2": 0.0}, []),
    ({"R2": -0.5}, []),
    ({"R2": None}, []),
]


@pytest.mark.parametrize(("facts", "numbers"), SAID, ids=lambda one: str(one)[:40])
def test_numbers_of_each_sentence(facts: dict[str, float | None], numbers: list[list[str]]) -> None:
    found = list(sentences(facts))
    assert len(found) == len(numbers)
    for text, wanted in zip(found, numbers, strict=True):
        assert all(number in text for number in wanted), text


def test_more_is_not_fewer() -> None:
    error = {"calibration error": 0.1}
    more, fewer = (next(sentences({"calibration ratio": r, **error})) for r in (1.2, 0.8))
    assert more != fewer
