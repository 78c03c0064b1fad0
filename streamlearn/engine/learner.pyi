from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamlearn.engine.rows import Rows
from streamlearn.engine.watcher import Watcher

_Array: TypeAlias = NDArray[np.float64]

class RowLearner:
    @property
    def outputs(self) -> int: ...
    @property
    def features(self) -> int: ...
    @property
    def shift(self) -> int: ...
    @property
    def can_correct(self) -> bool: ...
    @property
    def watcher(self) -> Watcher | None: ...
    @watcher.setter
    def watcher(self, watcher: Watcher | None) -> None: ...
    def run(
        self,
        rows: Rows,
        labels: _Array,
        weights: _Array | None,
        scores: _Array | None,
        start: int = 0,
        stop: int | None = None,
    ) -> int: ...
    def score(self, rows: Rows) -> _Array: ...
    def probabilities(self, scores: _Array) -> _Array: ...
