"""How good predictions are: numbers of one pass, in memory that does not grow with the events.

measured     the quality of a model, by kind: `ClassifierQuality`, `RegressorQuality`
ranking      scores of two classes: ROC, precision and recall, calibration
importance   what each field contributes to the scores
segments     the loss over time
bins         sums over narrow bins of numbers, which make one pass enough
constant     the best constant prediction, to compare with
"""

from streamlearn.quality.measured import (
    ClassifierQuality,
    Quality,
    RegressorQuality,
    quality_of,
)

__all__ = ["ClassifierQuality", "Quality", "RegressorQuality", "quality_of"]
