from streamlearn.rules.scaled import ProjectedSubgradient

class Pegasos(ProjectedSubgradient):
    def __init__(self, project: bool | float | None = True) -> None: ...
