"""The master problem of the bundle methods: Psi plus the maximum of the planes.

    minimize over w, c   Psi(w) + max_i (<a_i, w> + <c_i, c> + b_i)            ([Teo07] (10))

with c the unpenalized intercepts and Psi(w) = l1 |w|_1 + l2/2 |w|^2 in a ball. Its dual puts
weights alpha on the planes, in the simplex and with sum_i alpha_i c_i = 0:

    maximize   <b, alpha> - Psi*(-A' alpha)                                    ([Teo07] (12))

Psi* is quadratic for l2, piecewise quadratic for l2 with l1 (a few quadratic programs on the
coordinates beyond l1 then find the maximum), and an indicator for l1 alone (a linear program).
Any feasible alpha gives a lower bound on the minimum of the whole objective.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.hindsight.l1_program import L1Program
from streamlearn.hindsight.simplex_qp import simplex_qp
from streamlearn.penalties.norms import soft

if TYPE_CHECKING:
    from streamlearn.hindsight.planes import Planes
    from streamlearn.hindsight.risk import Vector
    from streamlearn.penalties.penalty import Penalty

INFINITY = float("inf")
# tolerance of sum_i alpha_i c_i = 0, relative to the largest |c_i|
ROUNDING = 1e-12
# smallest multiplier of a ball, relative to slope / radius: its error is that of rounding
LEAST_MULTIPLIER = 1e-8


class MasterProblem:
    """The master problem over a set of planes; `near` and `weight` add weight/2 |w - near|^2.

    In that term the intercepts are measured in their own unit, `planes.intercept_unit`.
    """

    def __init__(self, planes: Planes, penalty: Penalty) -> None:
        self.planes = planes
        self.l1, self.l2, self.radius = penalty.l1, penalty.l2, penalty.radius
        self._program = L1Program(self.l1) if self.l1 > 0.0 else None

    def solve(
        self, alpha: Vector, tolerance: float, near: Vector, weight: float = 0.0
    ) -> tuple[Vector, Vector]:
        """Return the minimizer w, and its alpha; ties in w are resolved toward `near`."""
        if self.l2 + weight == 0.0 and self.radius == INFINITY and self._program is not None:
            solved = self._program.solve(self.planes)
            if solved is not None:
                return solved
            # HiGHS failed: solve with a weak pull toward `near`
            weight = 1e-6 * self.l1 / (1.0 + float(np.abs(near).max()))
        if self.l2 + weight > 0.0:
            w, alpha = self._solve_without_ball(self.l2 + weight, alpha, tolerance, near, weight)
            if np.linalg.norm(w[: self.planes.width]) <= self.radius:
                return w, alpha
        return self._solve_on_sphere(alpha, tolerance, near, weight)

    def bound(self, alpha: Vector, near: Vector) -> float:
        """Return the dual value at alpha, a lower bound on the minimum of the objective."""
        planes = self.planes
        alpha, left = self._balanced_alpha(alpha)
        slopes = _combination(alpha, planes.slopes)
        offset = float(alpha @ planes.offsets)
        # `left` is rounding error, which grows with the size of the minimizer
        offset -= 10.0 * float(left @ (1.0 + np.abs(near[planes.width :])))
        if self.l2 == 0.0 and self.radius == INFINITY:
            top = float(np.abs(slopes).max(initial=0.0))
            if top <= self.l1:
                return offset
            # mix alpha with the constant plane until the slopes are small enough
            share = self.l1 / top
            return (1.0 - share) * float(planes.offsets[0]) + share * offset
        beyond = np.maximum(np.abs(slopes) - self.l1, 0.0)
        norm = float(np.linalg.norm(beyond))
        if norm <= self.l2 * self.radius and self.l2 > 0.0:
            return offset - norm * norm / (2.0 * self.l2)
        return offset - self.radius * norm + 0.5 * self.l2 * self.radius**2

    def _solve_without_ball(
        self, curvature: float, alpha: Vector, tolerance: float, near: Vector, weight: float
    ) -> tuple[Vector, Vector]:
        """Minimize with this curvature of Psi and without the ball."""
        planes = self.planes
        pull = weight * near[: planes.width]
        start = near[planes.width :].copy()
        if not len(start):
            alpha = self._maximize(curvature, pull, 0.0, planes.offsets, alpha, tolerance)
            return self._weights(curvature, pull, alpha), alpha
        # mu/2 |c - start|^2 keeps the intercepts close to their last values. Where the minimum must
        # be exact, start moves to them until the term vanishes (the method of multipliers).
        mu = planes.intercept_unit * (weight or 1e-3 * curvature)
        scale = float(np.abs(planes.free_slopes).max())
        for _ in range(1 if weight else 30):
            square = planes.free_slopes @ planes.free_slopes.T / mu
            linear = planes.offsets + planes.free_slopes @ start
            alpha = self._maximize(curvature, pull, square, linear, alpha, tolerance)
            left = alpha @ planes.free_slopes
            start -= left / mu
            if np.abs(left).max() <= ROUNDING * scale:
                break
            mu *= 0.5
        w = self._weights(curvature, pull, alpha)
        return np.concatenate([w, start]), alpha

    def _solve_on_sphere(
        self, alpha: Vector, tolerance: float, near: Vector, weight: float
    ) -> tuple[Vector, Vector]:
        """Find the multiplier of |w| <= radius by secants on 1/|w|, nearly linear in it."""
        width, least = self.planes.width, self.l2 + weight
        # a tiny multiplier, because without curvature the minimizer is not unique
        slope = math.sqrt(float(np.diagonal(self.planes.products).max()))
        low = max(tolerance / self.radius**2, LEAST_MULTIPLIER * slope / self.radius, 1e-300)
        high = INFINITY
        extra = low
        for _ in range(40):
            w, alpha = self._solve_without_ball(least + extra, alpha, tolerance, near, weight)
            norm = float(np.linalg.norm(w[:width]))
            if abs(norm - self.radius) <= 1e-9 * self.radius or (
                extra == low and norm < self.radius
            ):
                break
            low, high = (extra, high) if norm > self.radius else (low, extra)
            extra = (least + extra) * norm / self.radius - least
            if not low < extra < high:
                extra = math.sqrt(low * high) if high < INFINITY else 4.0 * low
        w[:width] *= min(1.0, self.radius / max(norm, 1e-300))
        return w, alpha

    def _maximize(
        self,
        curvature: float,
        pull: Vector,
        square: Vector | float,
        linear: Vector,
        alpha: Vector,
        tolerance: float,
    ) -> Vector:
        """Minimize |soft(pull - A' alpha, l1)|^2 / 2 curvature + alpha' square alpha / 2 - linear.

        Newton's method on a piecewise quadratic: each piece is a quadratic program.
        """
        planes = self.planes
        if self.l1 == 0.0:
            H = planes.products / curvature + square
            d = linear + planes.slopes @ (pull / curvature) if pull.any() else linear
            return simplex_qp(H, d, alpha, tolerance)
        extra = np.zeros((planes.count, planes.count)) + square
        for _ in range(50):
            u = pull - _combination(alpha, planes.slopes)
            beyond = np.flatnonzero(np.abs(u) > self.l1)
            part = planes.slopes[:, beyond]
            w = _soft(u[beyond], self.l1) / curvature
            gradient = extra @ alpha - part @ w - linear
            if float(alpha @ gradient) - gradient.min() <= tolerance:
                break
            H = part @ part.T / curvature + extra
            target = simplex_qp(H, H @ alpha - gradient, alpha, 0.1 * tolerance)
            direction = target - alpha
            along = _combination(target, planes.slopes) - _combination(alpha, planes.slopes)
            rise = float(direction @ (extra @ alpha - linear))
            bend = float(direction @ extra @ direction)
            step = _exact_line_search(u, along, self.l1, curvature, rise, bend)
            if step <= 0.0:
                break
            alpha = np.maximum(alpha + step * direction, 0.0)
            alpha /= alpha.sum()
        return alpha

    def _weights(self, curvature: float, pull: Vector, alpha: Vector) -> Vector:
        return _soft(pull - _combination(alpha, self.planes.slopes), self.l1) / curvature

    def _balanced_alpha(self, alpha: Vector) -> tuple[Vector, Vector]:
        """Return `alpha` changed minimally so that sum_i alpha_i c_i = 0, and the residual."""
        C = self.planes.free_slopes
        if not C.shape[1]:
            return alpha, np.zeros(0)
        for _ in range(2):
            on = np.flatnonzero(alpha)
            rows = np.vstack([np.ones(len(on)), C[on].T])
            # large weights change more, so that none falls below 0
            scaled = rows * alpha[on]
            wrong = rows @ alpha[on]
            wrong[0] -= 1.0
            alpha = alpha.copy()
            alpha[on] -= alpha[on] * np.linalg.lstsq(scaled, wrong, rcond=1e-13)[0]
            alpha = np.maximum(alpha, 0.0)
            total = float(alpha.sum())
            if not total > 0.0:
                break
            alpha /= total
        left = np.abs(alpha @ C)
        if total > 0.0 and left.max() <= ROUNDING * float(np.abs(C).max()):
            return alpha, left
        # only the constant plane is certain
        return np.eye(1, len(alpha))[0], np.zeros(C.shape[1])


def _combination(alpha: Vector, rows: Vector) -> Vector:
    """Return alpha' rows, computed from the rows with non-zero weight."""
    on = np.flatnonzero(alpha)
    total: Vector = alpha[on] @ rows[on]
    return total


def _soft(v: Vector, threshold: float) -> Vector:
    return soft(v, threshold) if threshold > 0.0 else v


def _exact_line_search(
    u: Vector, along: Vector, l1: float, curvature: float, rise: float, bend: float
) -> float:
    """Return the step in [0, 1] where the slope along the direction, which only rises, is zero."""

    def slope(step: float) -> float:
        w = _soft(u - step * along, l1)
        return rise + step * bend - float(w @ along) / curvature

    low, high = 0.0, 1.0
    at_low, at_high = slope(low), slope(high)
    if at_low >= 0.0:
        return 0.0
    if at_high <= 0.0:
        return 1.0
    for _ in range(60):
        middle = low + (high - low) * at_low / (at_low - at_high)
        here = slope(middle)
        if abs(here) <= 1e-12 * abs(at_low) or high - low <= 1e-15:
            return middle
        if here < 0.0:
            low, at_low, at_high = middle, here, 0.5 * at_high
        else:
            high, at_high, at_low = middle, here, 0.5 * at_low
    return low
