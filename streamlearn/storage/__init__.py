"""Where checkpoints are kept: a directory, or a prefix of an object store.

`open_store` returns the `Store` of a location. `checkpoint.path`, `streamlearn models` and
`LinearClassifier.load` all take either.
"""

from streamlearn.storage.location import Location, is_url, location_problem, open_store
from streamlearn.storage.store import Store, StoredFile

__all__ = [
    "Location",
    "Store",
    "StoredFile",
    "is_url",
    "location_problem",
    "open_store",
]
