from streamlearn.rules.rule import Rule
from streamlearn.rules.sizes import KINDS as KINDS
from streamlearn.rules.sizes import Sizes

class Guarded(Rule):
    low: float
    high: float

class Sized(Guarded):
    size: str
    def share(self, sizes: dict[str, Sizes]) -> None: ...

def kind_of_size(owner: str, size: str) -> str: ...
