"""What a test needs and this machine has not: skipped with the reason, but never in CI."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

PACKAGES = {"promtool": "prometheus", "chromedriver": "chromium-driver"}


def lacks(reason: object) -> NoReturn:
    """Skip the test; in CI, which installs all that tests need, fail it."""
    if "CI" in os.environ:
        pytest.fail(f"CI skips no test: {reason}")
    pytest.skip(str(reason))


def installed(program: str) -> str:
    """Where a program is."""
    package = PACKAGES.get(program, program)
    return shutil.which(program) or lacks(
        f"{program} is not installed: Debian's package {package} has it"
    )
