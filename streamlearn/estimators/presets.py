"""Presets: the papers' algorithms by name, with numbers as parameters.

A preset is a LinearClassifier or LinearRegressor with a fixed rule, loss and penalty. It takes the
same options: features, fit_intercept, average, batch, seed, and class_weight for classifiers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.estimators.regressor import LinearRegressor
from streamlearn.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Loss
from streamlearn.penalties import L2, ElasticNet, LpSquared, Penalty
from streamlearn.rules import (
    AdaGrad,
    Adaptive,
    DualAveraging,
    FTRLProximal,
    GradientDescent,
    OptimisticProximal,
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
    average: str
    batch: int
    seed: int | None


class ClassifierOptions(Options, total=False):
    """The options of every classifier."""

    class_weight: Mapping[Hashable, float] | None


class PresetClassifier(LinearClassifier):
    """A classifier with a fixed rule, loss and penalty."""

    def _build(self, options: ClassifierOptions) -> None:
        """Assemble the estimator; the parameters are attributes already."""
        self.options = options
        rule, loss, penalty = self._components()
        super().__init__(rule, loss, penalty, **options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        raise NotImplementedError


class PresetRegressor(LinearRegressor):
    """A regressor with a fixed rule, loss and penalty."""

    def _build(self, options: Options) -> None:
        """Assemble the estimator; the parameters are attributes already."""
        self.options = options
        rule, loss, penalty = self._components()
        super().__init__(rule, loss, penalty, **options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        raise NotImplementedError


class PegasosClassifier(PresetClassifier):
    """Pegasos ([Do09] section 3.3): a linear SVM."""

    def __init__(self, l2: float = 1e-4, **options: Unpack[ClassifierOptions]) -> None:
        self.l2 = l2
        self._build(options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return Pegasos(), Hinge(), L2(self.l2)


class AdaptiveClassifier(PresetClassifier):
    """Adaptive online gradient descent ([Do09] equation (4)): hinge loss."""

    def __init__(self, l2: float = 1e-4, **options: Unpack[ClassifierOptions]) -> None:
        self.l2 = l2
        self._build(options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return Adaptive(), Hinge(), L2(self.l2)


class ProximalClassifier(PresetClassifier):
    """The optimistic proximal solver ([Do09] Algorithm 3): hinge loss."""

    def __init__(self, l2: float = 1e-4, **options: Unpack[ClassifierOptions]) -> None:
        self.l2 = l2
        self._build(options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return OptimisticProximal(), Hinge(), L2(self.l2)


class DualAveragingClassifier(PresetClassifier):
    """Regularized dual averaging ([Xiao10] Algorithms 1 and 2): logistic loss, exact zeros."""

    def __init__(
        self,
        l1: float = 1e-4,
        l2: float = 0.0,
        gamma: float = 1.0,
        rho: float = 0.0,
        **options: Unpack[ClassifierOptions],
    ) -> None:
        self.l1 = l1
        self.l2 = l2
        self.gamma = gamma
        self.rho = rho
        self._build(options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return DualAveraging(self.gamma, self.rho), Logistic(), ElasticNet(self.l1, self.l2)


class PrimalGradientClassifier(PresetClassifier):
    """The Primal Gradient Solver ([Zhu09] Figure 1): logistic loss."""

    def __init__(
        self,
        l2: float = 1e-4,
        p: float = 2.0,
        **options: Unpack[ClassifierOptions],
    ) -> None:
        self.l2 = l2
        self.p = p
        self._build(options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return PrimalGradient(), Logistic(), LpSquared(self.l2, self.p)


class FTRLClassifier(PresetClassifier):
    """FTRL-Proximal as in click prediction: logistic loss, exact zeros."""

    def __init__(
        self,
        alpha: float = 0.1,
        beta: float = 1.0,
        l1: float = 0.0,
        l2: float = 0.0,
        **options: Unpack[ClassifierOptions],
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.l1 = l1
        self.l2 = l2
        self._build(options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return FTRLProximal(self.alpha, self.beta), Logistic(), ElasticNet(self.l1, self.l2)


class AdaGradClassifier(PresetClassifier):
    """AdaGrad with composite steps: logistic loss, exact zeros."""

    def __init__(
        self,
        step: float = 0.1,
        l1: float = 0.0,
        l2: float = 0.0,
        **options: Unpack[ClassifierOptions],
    ) -> None:
        self.step = step
        self.l1 = l1
        self.l2 = l2
        self._build(options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return AdaGrad(self.step), Logistic(), ElasticNet(self.l1, self.l2)


class GradientDescentClassifier(PresetClassifier):
    """Gradient descent with steps step / sqrt t: logistic loss."""

    def __init__(
        self,
        step: float = 0.1,
        l2: float = 0.0,
        **options: Unpack[ClassifierOptions],
    ) -> None:
        self.step = step
        self.l2 = l2
        self._build(options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return GradientDescent(InverseSqrt(self.step)), Logistic(), L2(self.l2)


class PegasosRegressor(PresetRegressor):
    """Pegasos ([Do09] section 3.3): epsilon-insensitive regression."""

    def __init__(self, l2: float = 1e-4, **options: Unpack[Options]) -> None:
        self.l2 = l2
        self._build(options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return Pegasos(), EpsilonInsensitive(), L2(self.l2)


class AdaptiveRegressor(PresetRegressor):
    """Adaptive online gradient descent ([Do09] equation (4)): epsilon-insensitive loss."""

    def __init__(self, l2: float = 1e-4, **options: Unpack[Options]) -> None:
        self.l2 = l2
        self._build(options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return Adaptive(), EpsilonInsensitive(), L2(self.l2)


class ProximalRegressor(PresetRegressor):
    """The optimistic proximal solver ([Do09] Algorithm 3): epsilon-insensitive loss."""

    def __init__(self, l2: float = 1e-4, **options: Unpack[Options]) -> None:
        self.l2 = l2
        self._build(options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return OptimisticProximal(), EpsilonInsensitive(), L2(self.l2)


class DualAveragingRegressor(PresetRegressor):
    """Regularized dual averaging ([Xiao10] Algorithms 1 and 2): Huber loss, exact zeros."""

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

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return DualAveraging(self.gamma, self.rho), Huber(), ElasticNet(self.l1, self.l2)


class PrimalGradientRegressor(PresetRegressor):
    """The Primal Gradient Solver ([Zhu09] Figure 1): Huber loss."""

    def __init__(self, l2: float = 1e-4, p: float = 2.0, **options: Unpack[Options]) -> None:
        self.l2 = l2
        self.p = p
        self._build(options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return PrimalGradient(), Huber(), LpSquared(self.l2, self.p)


class FTRLRegressor(PresetRegressor):
    """FTRL-Proximal as in click prediction: Huber loss, exact zeros."""

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

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return FTRLProximal(self.alpha, self.beta), Huber(), ElasticNet(self.l1, self.l2)


class AdaGradRegressor(PresetRegressor):
    """AdaGrad with composite steps: Huber loss, exact zeros."""

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

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return AdaGrad(self.step), Huber(), ElasticNet(self.l1, self.l2)


class GradientDescentRegressor(PresetRegressor):
    """Gradient descent with steps step / sqrt t: Huber loss."""

    def __init__(self, step: float = 0.1, l2: float = 0.0, **options: Unpack[Options]) -> None:
        self.step = step
        self.l2 = l2
        self._build(options)

    def _components(self) -> tuple[Rule, Loss, Penalty]:
        return GradientDescent(InverseSqrt(self.step)), Huber(), L2(self.l2)
