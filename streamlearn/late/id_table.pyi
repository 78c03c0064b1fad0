from typing import final

@final
class IdTable:
    def __init__(self, seed: int) -> None: ...
    @property
    def seed(self) -> int: ...
