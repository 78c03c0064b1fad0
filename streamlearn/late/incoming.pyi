from typing import final

@final
class IncomingEvents:
    def __sizeof__(self) -> int: ...
