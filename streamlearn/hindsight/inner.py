"""Inner products in the calling thread only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import Vector


def inner(a: Vector, b: Vector) -> float:
    """Return <a, b>.

    `a @ b` would split long vectors among BLAS threads. They spin while they wait, and so take
    cores from the learner whose regret is being computed.
    """
    return float(np.einsum("i,i->", a, b))
