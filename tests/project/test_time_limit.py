"""The time limit: a test that hangs fails with its stacks, and the other tests still run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# compiled loops hang with and without the GIL, so that no signal handler runs
TESTS = """
import itertools, subprocess, threading, pytest
from streamlearn.daemon.process.heartbeat import Heartbeat

@pytest.fixture
def broken():
    yield
    threading.Event().wait()

@pytest.mark.timeout(0.5)
def test_waits():
    threading.Event().wait()

@pytest.mark.timeout(0.5)
def test_tears_down(broken):
    pass

@pytest.mark.timeout(0.5)
def test_waits_for_a_process():
    with subprocess.Popen(["sleep", "3600"]) as process:
        try:
            process.communicate()
        finally:
            process.kill()

@pytest.mark.timeout(0.5)
def test_releases_the_gil():
    Heartbeat().watch(1e9, 1, 10, 2, b"", b"")

@pytest.mark.timeout(0.5)
def test_holds_the_gil():
    sum(itertools.repeat(0))

def test_others_still_run():
    pass
"""
INI = """
[pytest]
markers =
    timeout: seconds
    nightly: longer
"""


@pytest.mark.timeout(300)
def test_a_test_that_hangs_fails(tmp_path: Path) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "test_hangs.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text(INI)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "1", "-rA"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_ADDOPTS": "", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    passed = [line[1] for line in lines if line[:1] == ["PASSED"]]
    failed = {line[1] for line in lines if line[:1] in (["FAILED"], ["ERROR"])}
    assert done.returncode == 1, done.stdout
    assert "test_hangs.py::test_others_still_run" in passed
    assert len(failed) == TESTS.count("timeout(")
    for line in ("threading.Event().wait()", "process.communicate()"):
        assert line in done.stdout
    for name in ("releases_the_gil", "holds_the_gil"):
        assert f"in test_{name}" in done.stderr
