"""Inner products in the calling thread alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import Vector


def inner(a: Vector, b: Vector) -> float:
    """<a, b>.

    Not `a @ b`: of long vectors that is shared among threads which wait for their next share at
    full speed, and so take the cores from the learner whose regret is being found.
    """
    return float(np.einsum("i,i->", a, b))
