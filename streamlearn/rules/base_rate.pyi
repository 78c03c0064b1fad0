from streamlearn.rules.self_tuning import SelfTuning

class BaseRate(SelfTuning):
    labels: float
    mass: float
    def __init__(self) -> None: ...
