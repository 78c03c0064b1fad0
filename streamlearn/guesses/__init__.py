"""What the fields of a table are, guessed from its first rows.

    >>> rows = [{"user": n % 40, "price": n % 7 + 0.5, "key": f"k{n}"} for n in range(1000)]
    >>> for name, guess in guess_fields(columns_of(rows)).items():
    ...     print(f"{name}: {guess.field} ({guess.reason})")
    user: category (integers, 40 distinct; named as an id)
    price: number(center=3.5, invalid='category') (numbers)
    key: ignore (unique)

Labels are never looked at, so progressive losses stay those of unseen events, and the same rows
always give the same guesses. A wrong guess costs quality, never a record: later values that
contradict it are other categories, or missing.

    column      the first values of a field
    shapes      what distinguishes ids from quantities, by their values alone
    words       what the name of a field indicates
    numbers, times, texts    the guesses, in order: the first that applies is taken
    fields      all fields of a table
    sample      the first rows of a source; the delimiter of CSV
    task        whether labels are classes or numbers, and when all classes are known
"""

from streamlearn.guesses.column import Column, Guess, columns_of
from streamlearn.guesses.fields import FEWEST_ROWS, guess_fields
from streamlearn.guesses.sample import ROWS, TableSample, guess_delimiter
from streamlearn.guesses.task import are_numbers, classes_beside_strays, last_new_class

__all__ = [
    "FEWEST_ROWS",
    "ROWS",
    "Column",
    "Guess",
    "TableSample",
    "are_numbers",
    "classes_beside_strays",
    "columns_of",
    "guess_delimiter",
    "guess_fields",
    "last_new_class",
]
