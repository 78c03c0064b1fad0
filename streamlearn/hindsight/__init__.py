"""The best fixed model in hindsight, with a certified gap (000, 002, 004)."""

from streamlearn.hindsight.methods import METHODS, Method
from streamlearn.hindsight.problem import Objective, Problem
from streamlearn.hindsight.risk import Risk, RowRisk, SerialRisk, ShardedRisk
from streamlearn.hindsight.solution import Progress, Solution, Step
from streamlearn.hindsight.solve import solve
from streamlearn.hindsight.spectral import SpectralBound, spectral_bound

__all__ = [
    "METHODS",
    "Method",
    "Objective",
    "Problem",
    "Progress",
    "Risk",
    "RowRisk",
    "SerialRisk",
    "ShardedRisk",
    "Solution",
    "SpectralBound",
    "Step",
    "solve",
    "spectral_bound",
]
