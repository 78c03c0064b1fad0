from collections.abc import Mapping

class NameNumbers:
    def __init__(self, numbers: Mapping[bytes, int]) -> None: ...
