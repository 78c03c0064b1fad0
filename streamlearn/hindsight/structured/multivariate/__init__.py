"""Losses of all scores together: rankings and contingency tables ([Teo07] section 3.1).

Each is convex in the scores, at least 0, and an upper bound of the measure it stands for, at the
ranking or labeling that the scores predict.
"""

from streamlearn.hindsight.structured.multivariate.contingency import FBeta, PrecisionAtK
from streamlearn.hindsight.structured.multivariate.loss import LabeledLoss, MultivariateLoss
from streamlearn.hindsight.structured.multivariate.pairs import OrdinalRegression, ROCArea
from streamlearn.hindsight.structured.multivariate.ranking import NDCG, ExpectedRankUtility
from streamlearn.hindsight.structured.multivariate.reciprocal_rank import ReciprocalRank
from streamlearn.hindsight.structured.multivariate.risk import MultivariateRisk

__all__ = [
    "NDCG",
    "ExpectedRankUtility",
    "FBeta",
    "LabeledLoss",
    "MultivariateLoss",
    "MultivariateRisk",
    "OrdinalRegression",
    "PrecisionAtK",
    "ROCArea",
    "ReciprocalRank",
]
