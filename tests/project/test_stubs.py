"""The stub of every compiled module matches the binary."""

import contextlib
import io
from pathlib import Path

import pytest
from mypy import stubtest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "streamlearn").rglob("*.pyx"))
OPTIONS = (
    "--concise",
    "--ignore-unused-allowlist",
    "--ignore-disjoint-bases",  # every cdef class with fields is one; no class inherits from two
)
# names that Cython generates
GENERATED = r""".*\.__(reduce|setstate)_cython__
.*\.__pyx_\w+__
.*\.__test__
"""


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_compiled_module_has_a_stub(source: Path) -> None:
    assert source.with_suffix(".pyi").exists()


@pytest.mark.timeout(300)
def test_stubs_match_the_binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in SOURCES]
    if not modules:
        pytest.skip("nothing is compiled")
    allowed = tmp_path / "generated"
    allowed.write_text(GENERATED, encoding="ascii")
    monkeypatch.chdir(ROOT)
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        options = [*OPTIONS, "--allowlist", str(allowed), *modules]
        status = stubtest.test_stubs(stubtest.parse_options(options))
    assert status == 0, output.getvalue()
