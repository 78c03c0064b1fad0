"""Text as words or parts of words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamlearn.features.fields.field import CheckedField, whole

MOST_NGRAMS = 5
MOST_CHARS = 8


@dataclass(frozen=True, repr=False)
class Text(CheckedField):
    """Text as the words in it: the feature `field=word`, its value the number of occurrences.

    A word is a run of Unicode letters, digits and underscores, in lowercase. With `ngrams=2` also
    every two adjacent words are a feature, `field=two words`. With `chars=3` so are every three
    adjacent characters of a word with a space at each end, `field~ wo`; without `words` only these.

    With `binary` the value is 1 for any number of occurrences; with `normalized` the values of the
    field are scaled to a Euclidean norm of 1.
    """

    kind: ClassVar[str] = "text"
    words: bool = False
    ngrams: int = 1
    chars: int | None = None
    binary: bool = False
    normalized: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("text", "ngrams", self.ngrams, 1, MOST_NGRAMS)
        if self.chars is not None:
            whole("text", "chars", self.chars, 2, MOST_CHARS)

    @property
    def has_words(self) -> bool:
        """Whether words are features."""
        return self.words or self.ngrams > 1 or self.chars is None
