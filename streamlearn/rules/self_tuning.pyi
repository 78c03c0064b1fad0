from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.rules.event_rule import EventRule
from streamlearn.rules.feature_sizes import SIZE_KINDS as SIZE_KINDS
from streamlearn.rules.feature_sizes import FeatureSizes

class SelfTuning(EventRule):
    low: float
    high: float

class Sized(SelfTuning):
    size: str | None
    def scoring(self, sizes: dict[str, Any] | None = None) -> dict[str, Any]: ...
    def sized_weights(self) -> NDArray[np.float64]: ...
    def share(self, sizes: dict[str, FeatureSizes]) -> None: ...

class Normalized(Sized): ...

def checked_size(owner: str, size: str) -> str: ...
