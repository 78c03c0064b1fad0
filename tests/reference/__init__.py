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
    REFERENCE |= {
        name: member
        for name, member in vars(_module).items()
        if isinstance(member, type)
        and issubclass(member, Rule)
        and member.__module__ == _module.__name__
        and member is not Rule
        and not name.startswith("_")
    }
