"""What fields are: the declaration that training, serving and a model file share.

    >>> from streamlearn import fields
    >>> fields.Number(log1p=True, clip=(0, 100))
    Number(log1p=True, clip=(0.0, 100.0))
    >>> fields.parse("time(hour, weekday, zone='Europe/Berlin')")
    Time(hour=True, weekday=True, zone='Europe/Berlin')

One small file per kind; `grammar` reads and writes them as text, `spec` keeps those of an event.
"""

from streamlearn.features.fields.auto import Auto, Ignore
from streamlearn.features.fields.buckets import Buckets
from streamlearn.features.fields.category import Category
from streamlearn.features.fields.collections import List, Map
from streamlearn.features.fields.field import CheckedField, Field
from streamlearn.features.fields.grammar import parse
from streamlearn.features.fields.interaction import Interaction
from streamlearn.features.fields.number import Number
from streamlearn.features.fields.spec import FieldSpec
from streamlearn.features.fields.text import Text
from streamlearn.features.fields.time import Time

__all__ = [
    "Auto",
    "Buckets",
    "Category",
    "CheckedField",
    "Field",
    "FieldSpec",
    "Ignore",
    "Interaction",
    "List",
    "Map",
    "Number",
    "Text",
    "Time",
    "parse",
]
