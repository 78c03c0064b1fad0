from streamlearn.rules.rule import Rule
from streamlearn.rules.sizes import Sizes

class Guarded(Rule):
    low: float
    high: float

class Sized(Guarded):
    def share(self, sizes: Sizes) -> None: ...
