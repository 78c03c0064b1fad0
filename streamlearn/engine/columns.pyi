from collections.abc import Iterable

from streamlearn.columns.batch import ColumnBatch
from streamlearn.columns.reader import ColumnReader
from streamlearn.core.arrays import Array
from streamlearn.engine.events import Events

def rows_from_batches(
    columns: ColumnReader, batches: Iterable[ColumnBatch], grow: bool, weights: Array | None = None
) -> Events: ...
