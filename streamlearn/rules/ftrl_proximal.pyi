from streamlearn.rules.caching import CachingRule

class FTRLProximal(CachingRule):
    rate: float
    events: float
    features: float
    roots: float
    def __init__(self, alpha: float | str = 0.1, beta: float = 1.0) -> None: ...
    @property
    def alpha(self) -> float | str: ...
    @property
    def beta(self) -> float: ...
