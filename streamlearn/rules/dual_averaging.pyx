"""Regularized dual averaging: [Xiao10] Algorithm 1, with the enhanced l1 of Algorithm 2.

    w_{t+1} = argmin_w  <gbar_t, w> + Psi(w) + (beta_t / t) h(w)

Multiplied by t, the objective is <s, w> + t Psi(w) + beta_t h(w), where s is the sum of gradients.

With gamma="auto", beta_t = e^-a sqrt(sum |g|^2), and a is learned. The score p is proportional to
e^a, so the derivative of the loss by a is d = slope(p) p, and a follows it with the steps of
AdaGrad ([Duchi11]): a -= d / (4 sqrt(sum d^2)).
"""

from libc.math cimport exp, fmax, fmin, log, sqrt

from streamlearn.core.row cimport Row
from streamlearn.rules.dual cimport Dual

from streamlearn.rules.requirements import no_enhanced_l1, pace_needs_strengths, strongly_convex
from streamlearn.rules.schedules import Constant, InverseSqrt
from streamlearn.core.parameters import number

DEF PACE_STEP = 0.25
DEF PACE_LIMIT = 50.0
DEF HUGE = 1e150

SCHEDULES = {"sqrt": 0, "constant": 1, "log": 2, "zero": 3}


cdef class DualAveraging(Dual):
    """RDA ([Xiao10] Algorithms 1 and 2): exact zeros with l1; supports every penalty.

    beta_t is gamma sqrt t, gamma, gamma (1 + ln t) or 0 (`schedule`: "sqrt", "constant", "log",
    "zero"), and h is |w|^2 / 2 + rho |w|_1 or the penalty's own. A smaller gamma learns faster;
    "auto" finds the pace from the events, with schedule "sqrt" and rho 0.
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
        ("auto",),
    )
    scalars = (*Dual.scalars, "gradients", "pace", "pace_gradients")
    scalar_merges = {
        **Dual.scalar_merges, "gradients": "mean", "pace": "mean", "pace_gradients": "mean",
    }
    needs = (*Dual.needs, no_enhanced_l1, strongly_convex, pace_needs_strengths)

    def __init__(self, gamma=1.0, rho=0.0, schedule="sqrt"):
        name = type(self).__name__
        self.auto = type(self) is DualAveraging and gamma == "auto"
        self.start_gamma = 1.0 if self.auto else number(name, "gamma", gamma, above=0.0)
        self.rho = number(name, "rho", rho, low=0.0)
        if schedule not in SCHEDULES:
            raise ValueError(
                f"{name}: schedule must be one of {', '.join(SCHEDULES)}, got {schedule!r}"
            )
        if self.auto and (schedule != "sqrt" or self.rho > 0.0):
            raise ValueError(f"{name}: gamma='auto' needs schedule='sqrt' and rho=0")
        self.schedule = schedule
        self.kind = SCHEDULES[schedule]

    @property
    def gamma(self):
        """The parameter: a number, or "auto"."""
        return "auto" if self.auto else self.start_gamma

    @property
    def sums_gradients(self):
        """Whether the weights follow from the sum of gradients alone."""
        return not self.auto

    @property
    def intercept(self):
        return "inside" if self.schedule == "zero" else "free"

    def for_intercept(self):
        """Return the rule with threshold 0: no penalty, no rho (section 6.1, last paragraph)."""
        from streamlearn.penalties.norms import Zero

        free = self.params | {"rho": 0.0} if "rho" in self._names else self.params
        return type(self)(**free).bind(Zero(), self.loss)

    cdef double beta(self, double t) noexcept nogil:
        if self.auto:
            return exp(-self.pace) * sqrt(self.gradients) if self.gradients > 0.0 else 1.0
        if self.kind == 0:
            return self.start_gamma * sqrt(t)
        if self.kind == 1:
            return self.start_gamma
        return self.start_gamma * (1.0 + log(t)) if self.kind == 2 else 0.0

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef double d
        if self.auto:
            d = fmax(-HUGE, fmin(slope * Dual.score(self, row), HUGE))
            self.gradients += slope * slope * row.square
            self.pace_gradients += d * d
            if self.pace_gradients > 0.0:
                self.pace -= PACE_STEP * d / sqrt(self.pace_gradients)
                self.pace = fmax(-PACE_LIMIT, fmin(self.pace, PACE_LIMIT))
        Dual.update(self, row, slope)

    cdef void coefficients(self, double* a, double* b) noexcept nogil:
        a[0] = self.t + self.charged
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
        return total / (self.start_gamma * self.modulus)

    def bound(self, u):
        if self.auto:
            return None, "the theorem needs a gamma that is fixed before the events; give a number"
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
