"""The public data sets of the benchmark of the default model.

They are svmlight files, gzipped, with the names below; most are in LIBSVM's collection.
"""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows: TypeAlias = sparse.csr_array[np.float64]
    Labels: TypeAlias = NDArray[np.float64]

ROWS = 100_000
REPOSITORY = Path(__file__).resolve().parent.parent
PLACES = (REPOSITORY / "data", REPOSITORY.parent / "data", REPOSITORY.parent / "shared" / "data")
CACHE = Path(tempfile.gettempdir()) / "streamlearn-benchmarks"


def home() -> Path:
    """Return the directory of the data sets: STREAMLEARN_DATA, or where they usually are."""
    if given := os.environ.get("STREAMLEARN_DATA"):
        return Path(given)
    return next((place for place in PLACES if place.is_dir()), PLACES[0])


HOME = home()


@dataclass(frozen=True)
class Source:
    """A svmlight file, and whether its rows are shuffled first."""

    name: str
    file: str
    shuffled: bool = False


CLASSIFICATION = (
    Source("a9a", "a9a.svm.gz"),
    Source("ijcnn1", "ijcnn1.svm.gz"),
    Source("covtype.scale01", "covtype.binary.scale01.svm.gz", shuffled=True),
    Source("connect-4", "connect-4.binary.svm.gz", shuffled=True),
    Source("rcv1v2_ccat", "rcv1v2_ccat.svm.gz"),
    Source("phishing", "phishing.svm.gz"),
    Source("sms_spam", "sms_spam.svm.gz"),
    Source("spambase", "spambase.svm.gz", shuffled=True),
    Source("openbandit", "openbandit_click60k_h18.svm.gz"),
    Source("elec2", "elec2.svm.gz"),
)
UNSEEN = (  # by those who chose the default's members
    Source("w8a", "w8a.svm.gz", shuffled=True),
    Source("w8a, test", "w8a.t.svm.gz", shuffled=True),
    Source("a9a, test", "a9a.t.svm.gz"),
    Source("ijcnn1, test", "ijcnn1.t.svm.gz"),
    Source("rcv1v2_ccat, test", "rcv1v2_ccat.t.svm.gz"),
    Source("elec2, shuffled", "elec2.svm.gz", shuffled=True),
)
REGRESSION = (
    Source("bike", "bike_sharing_hour.reg.svm.gz"),
    Source("houses", "houses_cadata.reg.svm.gz", shuffled=True),
    Source("abalone", "abalone.reg.svm.gz", shuffled=True),
)


@dataclass(frozen=True)
class Examples:
    """Rows and their labels; binary labels are -1 and 1."""

    name: str
    rows: "Rows"
    labels: "Labels"


def load(source: Source, directory: Path, first: int = ROWS) -> Examples:
    """Read a data set, shuffle it if its source says so, and keep the first rows."""
    rows, labels = _read(directory / source.file)
    if source.shuffled:
        order = np.random.default_rng(0).permutation(len(labels))
        rows, labels = rows[order], labels[order]
    return Examples(source.name, rows[:first], labels[:first])


def _read(path: Path) -> tuple["Rows", "Labels"]:
    """Parse a svmlight file, or load its arrays from the cache."""
    stat = path.stat()
    key = hashlib.sha256(f"{path}{stat.st_size}{stat.st_mtime_ns}".encode()).hexdigest()[:16]
    kept = CACHE / f"{path.name}-{key}.npz"
    if not kept.exists():
        rows, labels = load_svmlight_file(str(path), zero_based=False)
        CACHE.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(".partial.npz")
        np.savez(
            partial,
            data=rows.data,
            indices=rows.indices,
            indptr=rows.indptr,
            shape=rows.shape,
            labels=labels,
        )
        partial.replace(kept)
    with np.load(kept) as arrays:
        parts = (arrays["data"], arrays["indices"].astype(np.int32), arrays["indptr"])
        height, width = arrays["shape"]
        return sparse.csr_array(parts, shape=(height, width)), arrays["labels"]
