from typing import Any

from streamlearn.rules.event_rule import EventRule
from streamlearn.rules.feature_sizes import SIZE_KINDS as SIZE_KINDS
from streamlearn.rules.feature_sizes import FeatureSizes

class SelfTuning(EventRule):
    low: float
    high: float

class Normalized(SelfTuning):
    size: str
    def scoring(self, sizes: dict[str, Any] | None = None) -> dict[str, Any]: ...
    def share(self, sizes: dict[str, FeatureSizes]) -> None: ...

def checked_size(owner: str, size: str) -> str: ...
