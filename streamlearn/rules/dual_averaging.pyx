"""Regularized dual averaging: [Xiao10] Algorithm 1, with the enhanced l1 of Algorithm 2.

    w_{t+1} = argmin_w  <gbar_t, w> + Psi(w) + (beta_t / t) h(w)

Multiplied by t, the objective is <s, w> + t Psi(w) + beta_t h(w), where s is the sum of gradients.
"""

from libc.math cimport fmax, log, sqrt

from streamlearn.rules.dual cimport Dual

from streamlearn.rules.requirements import no_enhanced_l1, strongly_convex
from streamlearn.rules.schedules import Constant, InverseSqrt
from streamlearn.core.parameters import number

SCHEDULES = {"sqrt": 0, "constant": 1, "log": 2, "zero": 3}


cdef class DualAveraging(Dual):
    """RDA ([Xiao10] Algorithms 1 and 2): exact zeros with l1; supports every penalty.

    beta_t is gamma sqrt t, gamma, gamma (1 + ln t) or 0 (`schedule`: "sqrt", "constant", "log",
    "zero"), and h is |w|^2 / 2 + rho |w|_1 or the penalty's own. A smaller gamma learns faster.
    A free intercept has threshold 0 (Algorithm 2). With schedule "zero" only the penalty bounds
    the weights, so the intercept is a feature of value 1 inside the penalty.
    """

    _names = ("gamma", "rho", "schedule")
    _examples = (
        (),
        (0.5, 0.03),
        (9.0, 0.0, "constant"),
        (1.0, 0.01, "log"),
        (1.0, 0.0, "zero"),
    )
    needs = (*Dual.needs, no_enhanced_l1, strongly_convex)

    def __init__(self, gamma=1.0, rho=0.0, schedule="sqrt"):
        name = type(self).__name__
        self.gamma = number(name, "gamma", gamma, above=0.0)
        self.rho = number(name, "rho", rho, low=0.0)
        if schedule not in SCHEDULES:
            raise ValueError(
                f"{name}: schedule must be one of {', '.join(SCHEDULES)}, got {schedule!r}"
            )
        self.schedule = schedule
        self.kind = SCHEDULES[schedule]

    @property
    def intercept(self):
        return "inside" if self.schedule == "zero" else "free"

    def for_intercept(self):
        """Return the rule with threshold 0: no penalty, no rho (section 6.1, last paragraph)."""
        from streamlearn.penalties.norms import Zero

        free = self.params | {"rho": 0.0} if "rho" in self._names else self.params
        return type(self)(**free).bind(Zero(), self.loss)

    cdef double beta(self, double t) noexcept nogil:
        if self.kind == 0:
            return self.gamma * sqrt(t)
        if self.kind == 1:
            return self.gamma
        return self.gamma * (1.0 + log(t)) if self.kind == 2 else 0.0

    cdef void coefficients(self, double* a, double* b) noexcept nogil:
        a[0] = self.t
        b[0] = DualAveraging.beta(self, self.t)

    # -- Theorem 1: Delta_t = beta_t D^2 + G^2/2 sum 1/(sigma tau + beta_tau) + a first-step term --

    cdef double beta_0(self) noexcept nogil:
        return fmax(self.sigma, self.beta(1.0))

    def start(self):
        Dual.start(self)
        # if Psi adds no curvature, the sum of 1/beta has a closed form
        self.sums_bound = self.sigma > 0.0 or self.schedule == "log"

    cdef void add_to_bound(self, double gradient) noexcept nogil:
        cdef double beta = self.b if self.t > 0.0 else self.beta_0()
        self.bound_sum += 1.0 / (self.modulus * (self.sigma * self.t + beta))

    def slack(self):
        """Return the sum of 1/(sigma tau + beta_tau) for tau = 0 .. t-1, over the modulus of h."""
        if self.sums_bound:
            return self.bound_sum
        steps = InverseSqrt(1.0) if self.schedule == "sqrt" else Constant(1.0)
        # beta_0 = beta_1, so the first term counts twice
        total = 1.0 + (steps.sum_to(self.t - 1.0) if self.t > 1.0 else 0.0)
        return total / (self.gamma * self.modulus)

    def bound(self, u):
        reason = self.domain_changed()
        distance = 0.0
        if reason is None and self.schedule != "zero":
            distance, reason = self.distance(u)
        if reason is not None:
            return None, reason
        if self.t == 0.0:
            return 0.0, None
        square = self.largest_gradient**2
        sigma, first = self.sigma * self.modulus, self.beta(1.0) * self.modulus
        late = 2.0 * (self.beta_0() * self.modulus - first) * square / (first + sigma) ** 2
        return self.beta(self.t) * distance + 0.5 * square * self.slack() + late, None
