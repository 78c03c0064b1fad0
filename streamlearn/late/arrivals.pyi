from typing import final

@final
class Arrivals:
    def __sizeof__(self) -> int: ...
