"""Names with an underscore stay in their package: ruff's SLF001, for compiled sources too."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "streamlearn"
COMPILED = sorted({*PACKAGE.rglob("*.pyx"), *PACKAGE.rglob("*.pxd"), *PACKAGE.rglob("*.pxi")})
SOURCES = sorted({*COMPILED, *PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")})

TEXT = re.compile(r'"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|#[^\n]*')
ACCESS = re.compile(r"(?:[)\]]|\.\w+|(?<![\w.])(?!(?:self|cls)\.)\w+)\._(?!_)\w+")
IMPORT = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+c?import[ \t]+(\([^)]*\)|.*)$", re.MULTILINE)


@cache
def code(path: Path) -> str:
    """Return a source without its comments and strings."""
    return TEXT.sub("", path.read_text(encoding="utf-8"))


def foreign_accesses(path: Path) -> Iterator[str]:
    """Yield the accesses to private names that the package of a source does not define."""
    siblings = "\n".join(code(one) for one in COMPILED if one.parent == path.parent)
    for match in ACCESS.finditer(code(path)):
        name = match[0].rpartition(".")[2]
        defined = rf"^[ \t]*(?:c?p?def\b.*[ *]{name}\b|self\.{name}[ \t]*=|{name}[ \t]*=)"
        if not re.search(defined, siblings, re.MULTILINE):
            yield match[0]


def foreign_imports(path: Path) -> Iterator[str]:
    """Yield the private names that a source imports from another package of streamlearn."""
    here = path.relative_to(PACKAGE).parts[0]
    for module, names in IMPORT.findall(code(path)):
        parts = module.split(".")
        private = [f"{module}.{name}" for name in re.findall(r"\b_\w+", names)]
        if parts[0] == "streamlearn" and parts[1:2] != [here]:
            yield from private
            yield from (module for part in parts if part.startswith("_"))


def test_compiled_sources_access_no_foreign_private_name() -> None:
    found = {str(path.relative_to(ROOT)): list(foreign_accesses(path)) for path in COMPILED}
    assert {path: names for path, names in found.items() if names} == {}


def test_no_private_name_is_imported_from_another_package() -> None:
    found = {str(path.relative_to(ROOT)): list(foreign_imports(path)) for path in SOURCES}
    assert {path: names for path, names in found.items() if names} == {}


def test_private_access_is_not_excused() -> None:
    rule = "SLF" + "001"
    assert [str(path) for path in SOURCES if rule in path.read_text(encoding="utf-8")] == []
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    excused = config["tool"]["ruff"]["lint"]["per-file-ignores"]
    assert [where for where, rules in excused.items() if rule in rules] == ["tests/**"]


def test_foreign_access_is_found(tmp_path: Path) -> None:
    source = tmp_path / "one.pyx"
    source.write_text(
        "cdef class One:\n"
        "    def run(self, other, f):\n"
        "        self._own = other._foreign  # other._comment\n"
        '        return f(x)._called, other.many[0]._indexed, self.part._held, "other._text"\n'
    )
    found = [access.rpartition(".")[2] for access in foreign_accesses(source)]
    assert found == ["_foreign", "_called", "_indexed", "_held"]
