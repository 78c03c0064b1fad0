from streamlearn.rules.balanced import Balanced

class Adaptive(Balanced):
    def __init__(
        self,
        radius: float | None = None,
        gradient_bound: float | None = None,
        project: bool | float | None = None,
    ) -> None: ...
