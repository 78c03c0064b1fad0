from streamlearn.rules.rule import Rule

class Guarded(Rule):
    low: float
    high: float

class Sized(Guarded): ...
