"""Delayed labels: events are held until their labels arrive, and learned as they were."""

from streamlearn.late.estimator import DelayedLabels

__all__ = ["DelayedLabels"]
