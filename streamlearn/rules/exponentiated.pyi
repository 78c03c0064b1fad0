from streamlearn.rules.dual_averaging import DualAveraging

class ExponentiatedDualAveraging(DualAveraging):
    def __init__(self, gamma: float = 1.0) -> None: ...
