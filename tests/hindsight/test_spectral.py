"""The spectral bound ([Takac13] (10) and (11)) against NumPy's singular values."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from streamlearn.hindsight import Problem, spectral_bound
from streamlearn.hindsight.spectral import SMALL, unit_norm
from streamlearn.losses import Squared
from streamlearn.penalties import L2

SHAPES = [(1, 1), (3, 40), (60, 7), (SMALL + 20, SMALL + 10)]


def exact(X: Any) -> float:
    return float(np.linalg.norm(X, 2) ** 2 / (len(X) * (X * X).sum(axis=1).max()))


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bounds_hold(shape: tuple[int, int], sparse: bool, signed: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * (rng.random(shape) < 0.6)
    X[0, 0] = 1.0
    X = X if signed else np.abs(X)
    bound = spectral_bound(scipy.sparse.csr_array(X) if sparse else X)
    sigma2 = exact(X)
    assert bound.sigma2_lower_bound <= sigma2 * (1 + 1e-9)
    assert sigma2 <= bound.sigma2 * (1 + 1e-9)
    assert bound.sigma2_lower_bound >= 0.9 * sigma2
    if not signed or min(shape) <= SMALL:
        assert bound.sigma2 <= 1.01 * sigma2
    assert bound.radius == pytest.approx(np.sqrt((X * X).sum(axis=1).max()))


def test_speedup_is_nearly_linear_up_to_one_over_sigma2() -> None:
    """[Takac13], after Theorem 1."""
    bound = spectral_bound(np.abs(np.random.default_rng(0).normal(size=(400, 30))))
    assert bound.beta(1) == 1.0
    assert bound.beta(400) == pytest.approx(400 * bound.sigma2)
    b = int(1 / bound.sigma2)
    assert bound.beta(b) <= 2.0
    betas = [bound.beta(b) for b in range(1, 401)]
    assert (np.diff(betas) >= 0.0).all()


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_scale_does_not_matter(scale: float) -> None:
    X = np.random.default_rng(0).normal(size=(30, 400))
    assert spectral_bound(scale * X).sigma2 == pytest.approx(exact(X), rel=1e-2)


def test_zeros_and_a_single_row() -> None:
    assert spectral_bound(np.zeros((4, 2))).speedup(4) == 4.0
    assert spectral_bound(np.ones((1, 3))).speedup(1) == 1.0


def test_bad_input_is_rejected_by_name() -> None:
    with pytest.raises(ValueError, match="X has 0 rows"):
        spectral_bound(np.zeros((0, 3)))
    with pytest.raises(ValueError, match="scale X"):
        spectral_bound(np.full((2, 2), 1e200))
    with pytest.raises(ValueError, match="b must be from 1 to 4"):
        spectral_bound(np.eye(4)).beta(5)
    with pytest.raises(ValueError, match="tolerance"):
        spectral_bound(np.eye(4), tolerance=0.0)


def test_unit_norm_ignores_the_lengths_of_rows() -> None:
    X = np.random.default_rng(0).normal(size=(80, 9)) * np.logspace(-9, 9, 80)[:, None]
    X[5] = 0.0
    unit = np.delete(X, 5, axis=0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    problem = Problem(X, np.zeros(80), Squared(), L2(1.0))
    assert unit_norm(problem.matrix) == pytest.approx(np.linalg.norm(unit, 2) ** 2, rel=5e-3)
