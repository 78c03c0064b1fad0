"""Presets: the papers' algorithms by name, with numbers as parameters.

A preset is a LinearClassifier or LinearRegressor with a fixed rule, loss and penalty. It takes the
same options: features, fit_intercept, average, batch, seed, and class_weight for classifiers. Each
algorithm is one recipe; its classifier and its regressor differ in their losses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, Unpack

from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.estimators.regressor import LinearRegressor
from streamlearn.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Loss
from streamlearn.penalties import L2, ElasticNet, LpSquared, Penalty, Zero
from streamlearn.rules import (
    AROW,
    AdaGrad,
    Adaptive,
    DualAveraging,
    FTRLProximal,
    GradientDescent,
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


class Options(TypedDict, total=False):
    """The options of every estimator."""

    features: Reader | None
    fit_intercept: bool | str
    class_weight: Mapping[Hashable, float] | None  # of classifiers
    average: str
    batch: int
    seed: int | None


class Preset:
    """An estimator with a fixed rule, loss and penalty: a recipe, then the kind of estimator."""

    _preset_loss: ClassVar[Loss]

    def _build(self, options: Options) -> None:
        """Assemble the estimator; the parameters are attributes already."""
        self.options = options
        rule, penalty = self._recipe()
        estimator: Any = super()
        estimator.__init__(rule, self._preset_loss, penalty, **options)

    def _recipe(self) -> tuple[Rule, Penalty]:
        raise NotImplementedError


class PegasosRecipe(Preset):
    """Pegasos ([Do09] section 3.3)."""

    def __init__(self, l2: float = 1e-4, **options: Unpack[Options]) -> None:
        self.l2 = l2
        self._build(options)

    def _recipe(self) -> tuple[Rule, Penalty]:
        return Pegasos(), L2(self.l2)


class AdaptiveRecipe(Preset):
    """Adaptive online gradient descent ([Do09] equation (4))."""

    def __init__(self, l2: float = 1e-4, **options: Unpack[Options]) -> None:
        self.l2 = l2
        self._build(options)

    def _recipe(self) -> tuple[Rule, Penalty]:
        return Adaptive(), L2(self.l2)


class ProximalRecipe(Preset):
    """The optimistic proximal solver ([Do09] Algorithm 3)."""

    def __init__(self, l2: float = 1e-4, **options: Unpack[Options]) -> None:
        self.l2 = l2
        self._build(options)

    def _recipe(self) -> tuple[Rule, Penalty]:
        return OptimisticProximal(), L2(self.l2)


class DualAveragingRecipe(Preset):
    """Regularized dual averaging ([Xiao10] Algorithms 1 and 2)."""

    def __init__(
        self,
        l1: float = 1e-4,
        l2: float = 0.0,
        gamma: float = 1.0,
        rho: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        self.l1 = l1
        self.l2 = l2
        self.gamma = gamma
        self.rho = rho
        self._build(options)

    def _recipe(self) -> tuple[Rule, Penalty]:
        return DualAveraging(self.gamma, self.rho), ElasticNet(self.l1, self.l2)


class PrimalGradientRecipe(Preset):
    """The Primal Gradient Solver ([Zhu09] Figure 1)."""

    def __init__(self, l2: float = 1e-4, p: float = 2.0, **options: Unpack[Options]) -> None:
        self.l2 = l2
        self.p = p
        self._build(options)

    def _recipe(self) -> tuple[Rule, Penalty]:
        return PrimalGradient(), LpSquared(self.l2, self.p)


class FTRLRecipe(Preset):
    """FTRL-Proximal as in click prediction."""

    def __init__(
        self,
        alpha: float = 0.1,
        beta: float = 1.0,
        l1: float = 0.0,
        l2: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.l1 = l1
        self.l2 = l2
        self._build(options)

    def _recipe(self) -> tuple[Rule, Penalty]:
        return FTRLProximal(self.alpha, self.beta), ElasticNet(self.l1, self.l2)


class AdaGradRecipe(Preset):
    """AdaGrad with composite steps."""

    def __init__(
        self,
        step: float = 0.1,
        l1: float = 0.0,
        l2: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        self.step = step
        self.l1 = l1
        self.l2 = l2
        self._build(options)

    def _recipe(self) -> tuple[Rule, Penalty]:
        return AdaGrad(self.step), ElasticNet(self.l1, self.l2)


class GradientDescentRecipe(Preset):
    """Gradient descent with steps step / sqrt t."""

    def __init__(self, step: float = 0.1, l2: float = 0.0, **options: Unpack[Options]) -> None:
        self.step = step
        self.l2 = l2
        self._build(options)

    def _recipe(self) -> tuple[Rule, Penalty]:
        return GradientDescent(InverseSqrt(self.step)), L2(self.l2)


class PassiveAggressiveRecipe(Preset):
    """Passive-aggressive learning ([Crammer06] Figures 1 and 3)."""

    def __init__(
        self,
        C: float = 1.0,
        variant: Literal["", "I", "II"] = "I",
        **options: Unpack[Options],
    ) -> None:
        self.C = C
        self.variant = variant
        self._build(options)

    def _recipe(self) -> tuple[Rule, Penalty]:
        return PassiveAggressive(self.variant, self.C), Zero()


class AROWRecipe(Preset):
    """AROW, adaptive regularization of weight vectors ([Crammer09] Figure 1, diagonal)."""

    def __init__(self, r: float = 1.0, **options: Unpack[Options]) -> None:
        self.r = r
        self._build(options)

    def _recipe(self) -> tuple[Rule, Penalty]:
        return AROW(self.r), Zero()


class PegasosClassifier(PegasosRecipe, LinearClassifier):
    """Pegasos ([Do09] section 3.3): a linear SVM."""

    _preset_loss = Hinge()


class PegasosRegressor(PegasosRecipe, LinearRegressor):
    """Pegasos ([Do09] section 3.3): epsilon-insensitive loss."""

    _preset_loss = EpsilonInsensitive()


class AdaptiveClassifier(AdaptiveRecipe, LinearClassifier):
    """Adaptive online gradient descent ([Do09] equation (4)): hinge loss."""

    _preset_loss = Hinge()


class AdaptiveRegressor(AdaptiveRecipe, LinearRegressor):
    """Adaptive online gradient descent ([Do09] equation (4)): epsilon-insensitive loss."""

    _preset_loss = EpsilonInsensitive()


class ProximalClassifier(ProximalRecipe, LinearClassifier):
    """The optimistic proximal solver ([Do09] Algorithm 3): hinge loss."""

    _preset_loss = Hinge()


class ProximalRegressor(ProximalRecipe, LinearRegressor):
    """The optimistic proximal solver ([Do09] Algorithm 3): epsilon-insensitive loss."""

    _preset_loss = EpsilonInsensitive()


class DualAveragingClassifier(DualAveragingRecipe, LinearClassifier):
    """Regularized dual averaging ([Xiao10] Algorithms 1 and 2): logistic loss, exact zeros."""

    _preset_loss = Logistic()


class DualAveragingRegressor(DualAveragingRecipe, LinearRegressor):
    """Regularized dual averaging ([Xiao10] Algorithms 1 and 2): Huber loss, exact zeros."""

    _preset_loss = Huber()


class PrimalGradientClassifier(PrimalGradientRecipe, LinearClassifier):
    """The Primal Gradient Solver ([Zhu09] Figure 1): logistic loss."""

    _preset_loss = Logistic()


class PrimalGradientRegressor(PrimalGradientRecipe, LinearRegressor):
    """The Primal Gradient Solver ([Zhu09] Figure 1): Huber loss."""

    _preset_loss = Huber()


class FTRLClassifier(FTRLRecipe, LinearClassifier):
    """FTRL-Proximal as in click prediction: logistic loss, exact zeros."""

    _preset_loss = Logistic()


class FTRLRegressor(FTRLRecipe, LinearRegressor):
    """FTRL-Proximal as in click prediction: Huber loss, exact zeros."""

    _preset_loss = Huber()


class AdaGradClassifier(AdaGradRecipe, LinearClassifier):
    """AdaGrad with composite steps: logistic loss, exact zeros."""

    _preset_loss = Logistic()


class AdaGradRegressor(AdaGradRecipe, LinearRegressor):
    """AdaGrad with composite steps: Huber loss, exact zeros."""

    _preset_loss = Huber()


class GradientDescentClassifier(GradientDescentRecipe, LinearClassifier):
    """Gradient descent with steps step / sqrt t: logistic loss."""

    _preset_loss = Logistic()


class GradientDescentRegressor(GradientDescentRecipe, LinearRegressor):
    """Gradient descent with steps step / sqrt t: Huber loss."""

    _preset_loss = Huber()


class PassiveAggressiveClassifier(PassiveAggressiveRecipe, LinearClassifier):
    """Passive-aggressive learning ([Crammer06] Figure 1): hinge loss."""

    _preset_loss = Hinge()


class PassiveAggressiveRegressor(PassiveAggressiveRecipe, LinearRegressor):
    """Passive-aggressive learning ([Crammer06] Figure 3): epsilon-insensitive loss."""

    _preset_loss = EpsilonInsensitive()


class AROWClassifier(AROWRecipe, LinearClassifier):
    """AROW ([Crammer09] Figure 1, diagonal): hinge loss."""

    _preset_loss = Hinge()
