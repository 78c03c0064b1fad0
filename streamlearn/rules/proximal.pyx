"""Proximal projected subgradient descent: [Do09] Algorithms 2 and 3.

    tau_t  balances  2 tau_t R^2  and  G_t^2 / (2 (lambda_{1:t} + tau_{1:t}))
    w <- project( w - (lambda w + slope x) / (lambda_{1:t} + tau_{1:t}) )

With a horizon T, this is strategy 2: only tau_1 > 0, the minimizer of B(tau) in Theorem 2. Without
a radius (section 3.4), R starts small and grows by sqrt 2 whenever |w| comes close to it. The sums
restart then, and w is kept (the printed Algorithm 3 restarts w too, which Table 1 does not need).

The first step of a phase has length |x| 2R/G. If all rows are nearly as long as G allows, it leaves
the ball of R immediately, and R keeps growing by the luck of the first events. With `restrained`, a
phase begins with the curvature G/R, so no step is longer than R; Corollary 1 allows any tau.
"""

from libc.math cimport fmin, sqrt

from streamlearn.core.row cimport Row
from streamlearn.rules.adaptive_curvature cimport AdaptiveCurvature

from streamlearn.rules.adaptive_curvature import optional
from streamlearn.errors import IncompatibleError
from streamlearn.rules.requirements import accuracy_needs_l2
from streamlearn.rules.scaled import projection
from streamlearn.core.parameters import number


cdef class Proximal(AdaptiveCurvature):
    """Proximal regularization for online learning ([Do09] Algorithm 2).

    `radius` is R; None means the optimistic doubling of Algorithm 3. `gradient_bound` is G; None
    means the largest gradient seen. `project=r` projects on the ball of radius r after the step;
    the paper's S is project=radius, and the regret bound holds only then. `horizon=T` chooses tau_1
    for T events and requires `radius` and `gradient_bound`.
    """

    _names = ("radius", "gradient_bound", "project", "horizon")
    _examples = ((), (1.0,), (0.4, None, 0.4), (1.0, 2.0, 1.0, 60))
    cdef readonly object horizon
    cdef double first, slack
    cdef bint optimistic, limits_steps

    def __init__(self, radius=None, gradient_bound=None, project=None, horizon=None):
        self.radius = optional("Proximal", "radius", radius)
        self.gradient_bound = optional("Proximal", "gradient_bound", gradient_bound)
        self.project = projection("Proximal", project)
        self.horizon = optional("Proximal", "horizon", horizon)
        if horizon is not None and (radius is None or gradient_bound is None):
            raise IncompatibleError(
                "Proximal: horizon requires R and G before the first event; "
                "set radius and gradient_bound too"
            )

    def start(self):
        AdaptiveCurvature.start(self)
        self.optimistic = self.radius is None
        self.R = fmin(1.0, 1.0 / sqrt(self.l2)) if self.optimistic else self.radius
        self.first = -1.0
        if self.horizon is not None:
            self.first = best_tau(self.l2, self.R, self.given_bound, self.horizon)

    @property
    def why_no_merge(self):
        if self.optimistic:
            return "its phases belong to one stream; set radius, or use Pegasos"
        return None

    def for_intercept(self):
        from streamlearn.penalties.norms import Zero

        radius = None if self.optimistic else self.R
        return Proximal(radius, self.gradient_bound, None, self.horizon).bind(Zero(), self.loss)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef double c, G, tau, step = 0.0
        self.measure(row, slope)
        G = self.update_gradient_bound()
        if self.limits_steps and self.curvature == 0.0:
            self.curvature = G / self.R
        c = self.l2 * (self.t - self.since + 1.0) + self.curvature
        if self.first < 0.0:
            tau = self.balance(c, 0.25 * G * G / (self.R * self.R))
        else:
            tau = self.first if self.t == 0.0 else 0.0
        self.curvature += tau
        if c + tau > 0.0:
            step = 1.0 / (c + tau)
        self.bound_sum += 2.0 * tau * self.R * self.R + 0.5 * G * G * step
        self.move(row, slope, step, 1.0 - self.l2 * step, self.limit())
        if self.optimistic and sqrt(self.square) >= self.R - self.slack:
            # a new phase
            self.R *= sqrt(2.0)
            self.since = self.t
            self.curvature = 0.0

    def bound(self, u):
        if self.optimistic:
            return None, "no bound is proved for the optimistic radius on a stream; set radius"
        return AdaptiveCurvature.bound(self, u)


cdef class OptimisticProximal(Proximal):
    """The optimistic proximal solver ([Do09] Algorithm 3), without a radius parameter.

    R starts at min(1, 1/sqrt(lambda)) and grows by sqrt 2 when |w| reaches
    R - sqrt(2 accuracy / lambda). Weights are projected on the ball of Pegasos. With `restrained`,
    no step is longer than R, which keeps R stable when all rows have about the same length.
    """

    _names = ("gradient_bound", "accuracy", "restrained")
    _examples = ((), (2.0, 0.1), (None, 0.0, True))
    needs = (*Proximal.needs, accuracy_needs_l2)
    cdef readonly double accuracy
    cdef readonly bint restrained

    def __init__(self, gradient_bound=None, accuracy=0.0, restrained=False):
        Proximal.__init__(self, None, gradient_bound, True)
        self.restrained = bool(restrained)
        self.accuracy = number("OptimisticProximal", "accuracy", accuracy, low=0.0, below=0.5)

    def start(self):
        Proximal.start(self)
        self.limits_steps = self.restrained
        if self.accuracy > 0.0:
            self.slack = sqrt(2.0 * self.accuracy / self.l2)

    def for_intercept(self):
        from streamlearn.penalties.norms import Zero

        rule = OptimisticProximal(self.gradient_bound, 0.0, self.restrained)
        return rule.bind(Zero(), self.loss)


def best_tau(l2, R, G, T):
    """Minimize B(tau) = 4 tau R^2 + G^2/l2 [1/(1+z) + ln((T+z)/(1+z))] over tau >= 0, z = tau/l2.

    B' = 0 where (2 R l2 / G)^2 = 1/(1+z)^2 + 1/(1+z) - 1/(T+z); the right side decreases with z.
    """
    from scipy.optimize import brentq

    if l2 == 0.0:
        return G * T**0.5 / (2.0 * R)  # Corollary 3
    goal = (2.0 * R * l2 / G) ** 2

    def excess(z):
        return 1.0 / (1.0 + z) ** 2 + (T - 1.0) / ((1.0 + z) * (T + z)) - goal

    if excess(0.0) <= 0.0:
        return 0.0
    # for z >= T both terms are below 2 T / z^2
    return l2 * brentq(excess, 0.0, T + (2.0 * T / goal) ** 0.5 + 1.0, xtol=1e-300, rtol=1e-15)
