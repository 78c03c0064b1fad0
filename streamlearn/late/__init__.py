"""Labels that come late: events held until their label arrives, and learned as they were."""

from streamlearn.late.estimator import DelayedLabels

__all__ = ["DelayedLabels"]
