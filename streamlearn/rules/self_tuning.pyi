from streamlearn.rules.feature_sizes import SIZE_KINDS as SIZE_KINDS
from streamlearn.rules.feature_sizes import FeatureSizes
from streamlearn.rules.rule import Rule

class SelfTuning(Rule):
    low: float
    high: float

class Normalized(SelfTuning):
    size: str
    def share(self, sizes: dict[str, FeatureSizes]) -> None: ...

def checked_size(owner: str, size: str) -> str: ...
