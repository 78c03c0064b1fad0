"""scikit-learn estimators: for pipelines, grid searches and cross-validation.

They wrap a `LinearClassifier` or `LinearRegressor`: their attribute `model_`, which can be saved
and go on learning from a stream. scikit-learn is the extra `sklearn`.
"""

from streamlearn.sklearn.classifier import StreamClassifier
from streamlearn.sklearn.regressor import StreamRegressor

__all__ = ["StreamClassifier", "StreamRegressor"]
