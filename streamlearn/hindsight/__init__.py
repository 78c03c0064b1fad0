"""The best fixed model in hindsight, with a certified gap ([Do09], [Takac13], [Teo07])."""

from streamlearn.hindsight.methods import METHODS, Method
from streamlearn.hindsight.problem import Objective, Problem
from streamlearn.hindsight.risk import Risk
from streamlearn.hindsight.sharded import ArrayShard, solve_shards
from streamlearn.hindsight.solution import Progress, Solution, Step
from streamlearn.hindsight.solve import solve
from streamlearn.hindsight.spectral import SpectralBound, spectral_bound
from streamlearn.hindsight.structured import multivariate
from streamlearn.hindsight.structured.hierarchical import HierarchicalLogistic, HierarchicalMargin
from streamlearn.hindsight.structured.oracle import solve_risk

__all__ = [
    "METHODS",
    "ArrayShard",
    "HierarchicalLogistic",
    "HierarchicalMargin",
    "Method",
    "Objective",
    "Problem",
    "Progress",
    "Risk",
    "Solution",
    "SpectralBound",
    "Step",
    "multivariate",
    "solve",
    "solve_risk",
    "solve_shards",
    "spectral_bound",
]
