"""Anderson extrapolation: estimate the limit of a sequence of epochs.

Once the set of free duals has settled, epochs in a fixed order are nearly a linear map. The affine
combination of their results whose steps cancel best is then much closer to the limit than the last
result [Bertrand21].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.core.arrays import Array

POINTS = 6
RIDGE = 1e-12  # relative; needed because the steps become nearly parallel


def extrapolated(points: Sequence[Array], *images: Sequence[Array]) -> tuple[Array, ...]:
    """Estimate the limit of `points`, each made from the one before, and of their linear images.

    >>> extrapolated([np.array([0.0, 8.0]), np.array([4.0, 4.0]), np.array([6.0, 2.0])])[0].round(6)
    array([8., 0.])
    """
    steps = np.diff(points, axis=0)
    products = np.einsum("ik,jk->ij", steps, steps)  # in this thread only, see `inner`
    scale = float(np.trace(products))
    if scale == 0.0:
        return (points[-1], *(image[-1] for image in images))
    shares = np.linalg.solve(products / scale + RIDGE * np.eye(len(steps)), np.ones(len(steps)))
    shares /= shares.sum()
    return tuple(np.einsum("i,ij->j", shares, np.array(each[1:])) for each in (points, *images))
