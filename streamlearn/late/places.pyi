from typing import final

@final
class Places:
    def __init__(self, *args: object, **kwargs: object) -> None: ...
    @property
    def nbytes(self) -> int: ...
