"""What values of a field have in common, down to none of them."""

from __future__ import annotations

from typing import Any

import pytest

from streamlearn.guesses.column import Column


@pytest.mark.parametrize(
    ("values", "missing"),
    [(["1"], 0.0), ([None], 1.0), (["a", None], 0.5), (["a", "b", None], 1.0 / 3.0), ([], 1.0)],
)
def test_the_share_that_is_missing(values: list[Any], missing: float) -> None:
    assert Column("a", values).missing == pytest.approx(missing)
