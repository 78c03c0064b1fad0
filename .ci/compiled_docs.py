"""A Griffe extension: the API reference of compiled modules.

Griffe reads the stubs (.pyi) of compiled modules, which have the signatures and types. This
extension adds the docstrings of the imported objects, shows the parameters of `__new__` as those
of the class, and fences the doctests of all docstrings, which Markdown would take for quotations.
"""

from __future__ import annotations

import inspect
import re
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe

DOCTEST = re.compile(r"(?:^ *>>> .*\n?(?:^ *\S.*\n?)*)+", re.MULTILINE)
EXAMPLES = re.compile(r"^Examples\n-+$", re.MULTILINE)  # Griffe recognizes doctests there


class CompiledDocs(griffe.Extension):
    """Complete what Griffe has read from sources and stubs."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Complete the docstring of a module, a class, a function or an attribute."""
        if _from_stub(obj) and not obj.is_module:
            if isinstance(obj, griffe.Class) and "__new__" in obj.members:
                obj.members["__init__"] = obj.members.pop("__new__")
                obj.members["__init__"].name = "__init__"
            if obj.docstring is None and (text := _docstring(obj)):
                obj.docstring = griffe.Docstring(text, parent=obj, parser="numpy")
        if obj.docstring is not None:
            obj.docstring.value = _fenced(obj.docstring.value)


def _from_stub(obj: griffe.Object) -> bool:
    return isinstance(obj.filepath, Path) and obj.filepath.suffix == ".pyi"


def _docstring(obj: griffe.Object) -> str:
    """Return the docstring of the imported object, without the signature that Cython puts first."""
    where = obj.path.removeprefix(f"{obj.module.path}.").split(".")
    if where[-1] == "__init__":
        return ""
    try:
        found = reduce(getattr, where, import_module(obj.module.path))
    except AttributeError:  # the stub's own names: type variables, aliases
        return ""
    if obj.is_attribute and not inspect.isdatadescriptor(found):
        return ""  # a value, whose docstring is that of its type
    text = inspect.getdoc(found) or ""
    first, _, rest = text.partition("\n--\n\n")
    return rest if first.startswith(f"{where[-1]}(") else text


def _fenced(text: str) -> str:
    """Return a docstring with its doctests as code blocks."""
    examples = EXAMPLES.search(text)
    end = len(text) if examples is None else examples.start()
    fenced = DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text[:end])
    return fenced + text[end:]
