"""Labels that come late: events held until their label arrives, and learnt as they were."""

from streamlearn.late.estimator import LateLabels

__all__ = ["LateLabels"]
