"""Rules: how the weights move. One algorithm per file."""

from streamlearn.rules.accelerated import AcceleratedDualAveraging
from streamlearn.rules.adagrad import AdaGrad
from streamlearn.rules.adagrad_dual_averaging import AdaGradDualAveraging
from streamlearn.rules.adaptive import Adaptive
from streamlearn.rules.arow import AROW
from streamlearn.rules.base_rate import BaseRate
from streamlearn.rules.coin_betting import CoinBetting
from streamlearn.rules.diagonal_newton import DiagonalNewton
from streamlearn.rules.dual_averaging import DualAveraging
from streamlearn.rules.exponentiated import ExponentiatedDualAveraging
from streamlearn.rules.forward_backward import ForwardBackward
from streamlearn.rules.ftrl_proximal import FTRLProximal
from streamlearn.rules.gradient_descent import GradientDescent
from streamlearn.rules.mirror_descent import MirrorDescent
from streamlearn.rules.mixture import Mixture
from streamlearn.rules.normalized_adaptive import NormalizedAdaptive
from streamlearn.rules.passive_aggressive import PassiveAggressive
from streamlearn.rules.pegasos import Pegasos
from streamlearn.rules.pnorm import PNormDualAveraging
from streamlearn.rules.polynomial_average import PolynomialAverage
from streamlearn.rules.primal_gradient import PrimalGradient
from streamlearn.rules.proximal import OptimisticProximal, Proximal
from streamlearn.rules.rule import Rule
from streamlearn.rules.truncated_gradient import TruncatedGradient

__all__ = [
    "AROW",
    "AcceleratedDualAveraging",
    "AdaGrad",
    "AdaGradDualAveraging",
    "Adaptive",
    "BaseRate",
    "CoinBetting",
    "DiagonalNewton",
    "DualAveraging",
    "ExponentiatedDualAveraging",
    "FTRLProximal",
    "ForwardBackward",
    "GradientDescent",
    "MirrorDescent",
    "Mixture",
    "NormalizedAdaptive",
    "OptimisticProximal",
    "PNormDualAveraging",
    "PassiveAggressive",
    "Pegasos",
    "PolynomialAverage",
    "PrimalGradient",
    "Proximal",
    "Rule",
    "TruncatedGradient",
]
