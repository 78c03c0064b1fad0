"""The papers' algorithms in dense NumPy: slow, plain, and readable beside the paper.

One file per rule or close family, in the order of the pseudocode. Nothing here imports the
package under test; `REFERENCE` maps a rule's public name to its class.
"""

import importlib
import pkgutil

from .rule import Rule

REFERENCE: dict[str, type[Rule]] = {}

for _found in pkgutil.iter_modules(__path__):
    if _found.name.startswith("test"):
        continue
    _module = importlib.import_module(f"{__name__}.{_found.name}")
    for _name, _member in vars(_module).items():
        if (
            isinstance(_member, type)
            and issubclass(_member, Rule)
            and _member.__module__ == _module.__name__
            and _member is not Rule
            and not _name.startswith("_")
        ):
            REFERENCE[_name] = _member
