from collections.abc import Iterable

from streamlearn.columns.batch import ArrowBatch
from streamlearn.columns.reader import ColumnReader
from streamlearn.core.arrays import Array
from streamlearn.engine.events import Events

def rows_from_batches(
    columns: ColumnReader, batches: Iterable[ArrowBatch], grow: bool, weights: Array | None = None
) -> Events: ...
