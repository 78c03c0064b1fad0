"""Constraints of [telemetry]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.config.problems import ConfigProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.config.checks.values import Problems
    from streamlearn.config.structs import TelemetryConfig


def access(telemetry: TelemetryConfig) -> Problems:
    """Check that metrics which are to be protected are."""
    if telemetry.protect_metrics and telemetry.token is None:
        yield ConfigProblem(
            "telemetry.protect_metrics", "requires telemetry.token, which clients must send"
        )


CHECKS: tuple[Callable[..., Problems], ...] = (access,)
