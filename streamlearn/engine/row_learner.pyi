from collections.abc import Iterable

from streamlearn.core.arrays import Array
from streamlearn.engine.rows import Rows
from streamlearn.engine.watcher import Watcher

class RowLearner:
    @property
    def outputs(self) -> int: ...
    @property
    def features(self) -> int: ...
    @property
    def shift(self) -> int: ...
    @property
    def watcher(self) -> Watcher | None: ...
    @watcher.setter
    def watcher(self, watcher: Watcher | None) -> None: ...
    def run(
        self,
        rows: Rows,
        labels: Array | None,
        weights: Array | None,
        scores: Array | None,
        start: int = 0,
        stop: int | None = None,
        skip: bool = False,
    ) -> None: ...
    def score(self, rows: Rows) -> Array: ...
    def probabilities(self, scores: Array) -> Array: ...
    def positive_probabilities(self, scores: Iterable[float]) -> list[float]: ...
