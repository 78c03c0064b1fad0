from streamlearn.rules.scaled import Ballistic

class Pegasos(Ballistic):
    def __init__(self, project: bool | float | None = True) -> None: ...
