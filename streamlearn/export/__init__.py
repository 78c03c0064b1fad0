"""Models for other programs: plain data, a SQL expression, a scikit-learn pipeline.

document    weights and features as plain data, for JSON
sql         a SQL expression
pipeline    a scikit-learn pipeline; imports scikit-learn
score       how a model computes its score, feature by feature
fields      which features a field has
"""

from streamlearn.export.document import document
from streamlearn.export.sql import expression

__all__ = ["document", "expression"]
