"""The penalties Psi(w): closed forms from [Xiao10] section 2, one family per file."""

from streamlearn.penalties.geometries import KL, Entropy, LpSquared
from streamlearn.penalties.norms import L1, L2, Berhu, ElasticNet, Zero
from streamlearn.penalties.penalty import Penalty
from streamlearn.penalties.sets import Ball, L1Ball, LInfinity, Simplex
from streamlearn.penalties.target import TargetNonzero

__all__ = [
    "KL",
    "L1",
    "L2",
    "Ball",
    "Berhu",
    "ElasticNet",
    "Entropy",
    "L1Ball",
    "LInfinity",
    "LpSquared",
    "Penalty",
    "Simplex",
    "TargetNonzero",
    "Zero",
]
