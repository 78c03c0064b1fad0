"""The minimum over a whole stream, from minima over nested samples (docs/concepts/regret.md).

G(m) is the expected minimum of the objective over a random sample of m events. The minimum over a
sample is too low, per event, because it is fitted to that sample: G(m) / m grows with m. How much
it grows from m / 2 to m is seen without bias from two halves:

    excess = G(S) - G(A) - G(B) >= 0    for a sample S that is split into A and B.

If G(m) = m F - D / 2 + O(1 / m), as when the fit is well determined, the growth halves with each
doubling of m. If it falls by a share `decay` with each doubling, the minimum over N events is

    N G(n) / n + N / n * excess * (decay + decay^2 + ... + decay^L),    L = log2(N / n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SETTLED = 0.5  # the decay of a well-determined fit
LARGEST = 0.98


def growth(decay: float, doublings: float) -> float:
    """Return decay + decay^2 + ... for this many doublings, also a fraction of one.

    >>> growth(0.5, 1.0), growth(0.5, 2.0), growth(0.5, math.inf)
    (0.5, 0.75, 1.0)
    """
    last: float = decay**doublings
    return decay * (1.0 - last) / (1.0 - decay)


@dataclass(frozen=True)
class Correction:
    """What to add to the minimum over n of N events, scaled by N / n.

    The growth goes on falling as that of a well-determined fit, which is `least`, or as slowly as
    it does now: `most`.
    """

    least: float
    most: float

    @property
    def middle(self) -> float:
        """The estimate."""
        return 0.5 * (self.least + self.most)


def correction(excess: float, earlier: float | None, rows: int, events: float) -> Correction:
    """Return the correction for the excess of a sample, and of its half scaled to the sample.

    If it is 0 in the half, nothing can be said about the decay.
    """
    scale, doublings = events / rows * max(excess, 0.0), math.log2(events / rows)
    if earlier is None or earlier <= 0.0:
        decay = SETTLED if excess <= 0.0 else LARGEST
    else:
        decay = min(max(excess / earlier, SETTLED), LARGEST)
    return Correction(scale * growth(SETTLED, doublings), scale * growth(decay, doublings))
