"""Losses of all scores at once: rankings and contingency tables (004, section 3.1).

Each is convex in the scores, at least 0, and at least what it stands for: the measure's own loss
at the ranking, or the labeling, that the scores predict.
"""

from streamlearn.hindsight.structured.multivariate.contingency import FBeta, PrecisionAtK
from streamlearn.hindsight.structured.multivariate.loss import LabeledLoss, MultivariateLoss
from streamlearn.hindsight.structured.multivariate.pairs import OrdinalRegression, ROCArea
from streamlearn.hindsight.structured.multivariate.ranking import NDCG, ExpectedRankUtility
from streamlearn.hindsight.structured.multivariate.reciprocal_rank import ReciprocalRank
from streamlearn.hindsight.structured.multivariate.risk import MultivariateRisk

__all__ = [
    "NDCG",
    "LabeledLoss",
    "ExpectedRankUtility",
    "FBeta",
    "MultivariateLoss",
    "MultivariateRisk",
    "OrdinalRegression",
    "PrecisionAtK",
    "ROCArea",
    "ReciprocalRank",
]
