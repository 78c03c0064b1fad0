"""Presets: the papers' algorithms by name, with numbers as parameters.

A preset is a LinearClassifier or LinearRegressor with a fixed rule, loss and penalty. It takes the
same options: features, fit_intercept, average, batch, seed, and class_weight and calibrated for
classifiers. Each algorithm is one recipe; its classifier and its regressor differ in their losses.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, dataclass_transform

from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.estimators.regressor import LinearRegressor
from streamlearn.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Loss, Squared
from streamlearn.penalties import L2, ElasticNet, LpSquared, Penalty, Zero
from streamlearn.rules import (
    AROW,
    AdaGrad,
    Adaptive,
    DualAveraging,
    FTRLProximal,
    GradientDescent,
    Mixture,
    OptimisticProximal,
    PassiveAggressive,
    Pegasos,
    PrimalGradient,
    Rule,
)
from streamlearn.rules.schedules import InverseSqrt

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from streamlearn.features import Reader


@dataclass_transform(field_specifiers=(field,))
@dataclass(eq=False, repr=False)
class Preset:
    """An estimator with a fixed rule, loss and penalty.

    Annotated names are its parameters, those of the recipe first.
    """

    _preset_loss: ClassVar[Loss]

    features: Reader | None = field(default=None, kw_only=True)
    fit_intercept: bool | str = field(default=True, kw_only=True)
    average: str = field(default="last", kw_only=True)
    batch: int = field(default=1, kw_only=True)
    seed: int | None = field(default=None, kw_only=True)

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        """Assemble the estimator."""
        options = {one.name: getattr(self, one.name) for one in fields(self) if one.kw_only}
        rule, penalty = self._recipe()
        estimator: Any = super()
        estimator.__init__(rule, self._preset_loss, penalty, **options)

    def _recipe(self) -> tuple[Rule, Penalty]:
        raise NotImplementedError


class ClassifierOptions(Preset):
    """What classifiers take besides."""

    class_weight: Mapping[Hashable, float] | None = field(default=None, kw_only=True)
    calibrated: bool = field(default=False, kw_only=True)


class SparseRecipe(Preset):
    """The default rule with l1, l2 or both: exact zeros, and no step size to tune."""

    l1: float = 1e-4
    l2: float = 0.0

    def _recipe(self) -> tuple[Rule, Penalty]:
        return Mixture(), ElasticNet(self.l1, self.l2)


class PegasosRecipe(Preset):
    """Pegasos ([Do09] section 3.3)."""

    l2: float = 1e-4

    def _recipe(self) -> tuple[Rule, Penalty]:
        return Pegasos(), L2(self.l2)


class AdaptiveRecipe(Preset):
    """Adaptive online gradient descent ([Do09] equation (4))."""

    l2: float = 1e-4

    def _recipe(self) -> tuple[Rule, Penalty]:
        return Adaptive(), L2(self.l2)


class ProximalRecipe(Preset):
    """The optimistic proximal solver ([Do09] Algorithm 3)."""

    l2: float = 1e-4

    def _recipe(self) -> tuple[Rule, Penalty]:
        return OptimisticProximal(), L2(self.l2)


class DualAveragingRecipe(Preset):
    """Regularized dual averaging ([Xiao10] Algorithms 1 and 2)."""

    l1: float = 1e-4
    l2: float = 0.0
    gamma: float = 1.0
    rho: float = 0.0

    def _recipe(self) -> tuple[Rule, Penalty]:
        return DualAveraging(self.gamma, self.rho), ElasticNet(self.l1, self.l2)


class PrimalGradientRecipe(Preset):
    """The Primal Gradient Solver ([Zhu09] Figure 1)."""

    l2: float = 1e-4
    p: float = 2.0

    def _recipe(self) -> tuple[Rule, Penalty]:
        return PrimalGradient(), LpSquared(self.l2, self.p)


class FTRLRecipe(Preset):
    """FTRL-Proximal as in click prediction."""

    alpha: float = 0.1
    beta: float = 1.0
    l1: float = 0.0
    l2: float = 0.0

    def _recipe(self) -> tuple[Rule, Penalty]:
        return FTRLProximal(self.alpha, self.beta), ElasticNet(self.l1, self.l2)


class AdaGradRecipe(Preset):
    """AdaGrad with composite steps."""

    step: float = 0.1
    l1: float = 0.0
    l2: float = 0.0

    def _recipe(self) -> tuple[Rule, Penalty]:
        return AdaGrad(self.step), ElasticNet(self.l1, self.l2)


class GradientDescentRecipe(Preset):
    """Gradient descent with steps step / sqrt t."""

    step: float = 0.1
    l2: float = 0.0

    def _recipe(self) -> tuple[Rule, Penalty]:
        return GradientDescent(InverseSqrt(self.step)), L2(self.l2)


class PassiveAggressiveRecipe(Preset):
    """Passive-aggressive learning ([Crammer06] Figures 1 and 3)."""

    C: float = 1.0
    variant: Literal["", "I", "II"] = "I"

    def _recipe(self) -> tuple[Rule, Penalty]:
        return PassiveAggressive(self.variant, self.C), Zero()


class AROWRecipe(Preset):
    """AROW, adaptive regularization of weight vectors ([Crammer09] Figure 1, diagonal)."""

    r: float = 1.0

    def _recipe(self) -> tuple[Rule, Penalty]:
        return AROW(self.r), Zero()


class SparseClassifier(SparseRecipe, ClassifierOptions, LinearClassifier):
    """The default rule with l1, l2 or both: logistic loss, exact zeros, nothing to tune."""

    _preset_loss = Logistic()


class SparseRegressor(SparseRecipe, LinearRegressor):
    """The default rule with l1, l2 or both: squared loss, exact zeros, nothing to tune."""

    _preset_loss = Squared()


class PegasosClassifier(PegasosRecipe, ClassifierOptions, LinearClassifier):
    """Pegasos ([Do09] section 3.3): a linear SVM."""

    _preset_loss = Hinge()


class PegasosRegressor(PegasosRecipe, LinearRegressor):
    """Pegasos ([Do09] section 3.3): epsilon-insensitive loss."""

    _preset_loss = EpsilonInsensitive()


class AdaptiveClassifier(AdaptiveRecipe, ClassifierOptions, LinearClassifier):
    """Adaptive online gradient descent ([Do09] equation (4)): hinge loss."""

    _preset_loss = Hinge()


class AdaptiveRegressor(AdaptiveRecipe, LinearRegressor):
    """Adaptive online gradient descent ([Do09] equation (4)): epsilon-insensitive loss."""

    _preset_loss = EpsilonInsensitive()


class ProximalClassifier(ProximalRecipe, ClassifierOptions, LinearClassifier):
    """The optimistic proximal solver ([Do09] Algorithm 3): hinge loss."""

    _preset_loss = Hinge()


class ProximalRegressor(ProximalRecipe, LinearRegressor):
    """The optimistic proximal solver ([Do09] Algorithm 3): epsilon-insensitive loss."""

    _preset_loss = EpsilonInsensitive()


class DualAveragingClassifier(DualAveragingRecipe, ClassifierOptions, LinearClassifier):
    """Regularized dual averaging ([Xiao10] Algorithms 1 and 2): logistic loss, exact zeros."""

    _preset_loss = Logistic()


class DualAveragingRegressor(DualAveragingRecipe, LinearRegressor):
    """Regularized dual averaging ([Xiao10] Algorithms 1 and 2): Huber loss, exact zeros."""

    _preset_loss = Huber()


class PrimalGradientClassifier(PrimalGradientRecipe, ClassifierOptions, LinearClassifier):
    """The Primal Gradient Solver ([Zhu09] Figure 1): logistic loss."""

    _preset_loss = Logistic()


class PrimalGradientRegressor(PrimalGradientRecipe, LinearRegressor):
    """The Primal Gradient Solver ([Zhu09] Figure 1): Huber loss."""

    _preset_loss = Huber()


class FTRLClassifier(FTRLRecipe, ClassifierOptions, LinearClassifier):
    """FTRL-Proximal as in click prediction: logistic loss, exact zeros."""

    _preset_loss = Logistic()


class FTRLRegressor(FTRLRecipe, LinearRegressor):
    """FTRL-Proximal as in click prediction: Huber loss, exact zeros."""

    _preset_loss = Huber()


class AdaGradClassifier(AdaGradRecipe, ClassifierOptions, LinearClassifier):
    """AdaGrad with composite steps: logistic loss, exact zeros."""

    _preset_loss = Logistic()


class AdaGradRegressor(AdaGradRecipe, LinearRegressor):
    """AdaGrad with composite steps: Huber loss, exact zeros."""

    _preset_loss = Huber()


class GradientDescentClassifier(GradientDescentRecipe, ClassifierOptions, LinearClassifier):
    """Gradient descent with steps step / sqrt t: logistic loss."""

    _preset_loss = Logistic()


class GradientDescentRegressor(GradientDescentRecipe, LinearRegressor):
    """Gradient descent with steps step / sqrt t: Huber loss."""

    _preset_loss = Huber()


class PassiveAggressiveClassifier(PassiveAggressiveRecipe, ClassifierOptions, LinearClassifier):
    """Passive-aggressive learning ([Crammer06] Figure 1): hinge loss."""

    _preset_loss = Hinge()


class PassiveAggressiveRegressor(PassiveAggressiveRecipe, LinearRegressor):
    """Passive-aggressive learning ([Crammer06] Figure 3): epsilon-insensitive loss."""

    _preset_loss = EpsilonInsensitive()


class AROWClassifier(AROWRecipe, ClassifierOptions, LinearClassifier):
    """AROW ([Crammer09] Figure 1, diagonal): hinge loss."""

    _preset_loss = Hinge()
