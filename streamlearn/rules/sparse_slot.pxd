"""The numbers of a slot of the default under l1 and l2, and what an event changes.

l1 is one soft threshold, S(z, T) = -sgn(z) (|z| - T)_+. Each member has its own slopes g at its own
score, their sums z = sum g x per slot, and the weight (all for a slot outside the penalty: l1 = 0)

    adaptive  w = S(z, T) / (D + t l2),  D = s sqrt(G) / (2 pace),  G = sum (g x)^2
              z += g x - (D_new - D) w
              normalized adaptive steps [Ross13] in FTRL-proximal form [McMahan11]
    coin      w = S(z, T) / (D + t l2),  D = m (A + m) / W,  A = sum |g x|
              z += g x,  W = max(1, W - g x w - l1 |w| (events since the last))
              coin betting [Orabona17]; m is the largest |x| and |g x|
    newton    w = S(z, T) / (D + t l2),  D = 3 s^2 + sum b,  b = curvature x^2
              z += h x - b w
              diagonal Newton steps; h is the slope at the end of the step
    follower  w = prox(w - h x / D, 1 / D),  D = s sqrt(G) / (16 pace), for drift
              composite mirror descent [Duchi10]; h is the mean slope of infinitesimal steps
              0 unless adaptive, coin or newton is not, and votes (rules/sparse_mixture.pyx)
    average   of the follower, with polynomial decay [Shamir13]: w += 4 / (n + 3) (follower - w)

s is the typical size of a feature (rules/feature_sizes.pyx): s w stays when it changes. N counts
the features so far, pace = sqrt(t / N), and

    T = l1 t + min(sqrt G of adaptive, 30 l1 t),

whose second term keeps out a feature that was seen once.

The time of an event goes into divisions, square roots and branches on which weights are 0, which is
unpredictable. So two members are a SIMD pair (core/pairs.pxd), in which nothing branches: `steady`
is adaptive and coin, whose slope g is known before the row is learned; `moved` is newton and
follower, whose slope h depends on all of it.
"""

from libc.math cimport fabs, sqrt

from streamlearn.core.pairs cimport (
    Pair, absolute, add, divide, first, load, make_pair, maximum, minimum, multiply,
    nonzero_bits, second, select_nonzero, square_root, store, subtract,
)

DEF NEWTON_PRIOR = 3.0
DEF DECAY = 3.0
DEF LEAST = 1e-200  # added to divisors: 0 / 0 is 0

cdef enum:
    ADAPTIVE, COIN, NEWTON, FOLLOWER, AVERAGE, IN_SLOTS
    MARGIN = 30


cdef struct Slot:
    double[4] z  # the follower's is -D times its weight at event `last`
    double[4] penalty  # of the weights at event `last`
    double[2] inverse  # 1 / D of adaptive and coin
    double[2] norm, D  # of adaptive and follower
    double curvature
    double absolute, wealth, coin_largest
    double largest, size, roots, count  # roots: the sum of sqrt|x|
    double last, average


cdef struct Feature:
    Slot* slot
    double x  # 0: ignored
    double[IN_SLOTS] w
    double[2] inverse  # 1 / D of newton and follower
    double[2] thresholds  # of newton and follower, after the step
    double start, kept  # D w of the follower; what the average keeps


cdef struct Strengths:
    double[2] l1, half_l2  # twice, for pairs
    double t, l2
    double threshold, margin, ridge  # l1 t, 30 l1 t, l2 t
    double[4] masks  # of newton and follower, without and with a voter that is not 0


cdef inline void set_time(Strengths* strengths, double t) noexcept nogil:
    strengths.t = t
    strengths.threshold = t * strengths.l1[0]
    strengths.margin = MARGIN * strengths.threshold
    strengths.ridge = t * strengths.l2
    strengths.masks[0] = strengths.masks[2] = strengths.masks[3] = 1.0
    strengths.masks[1] = strengths.l1[0] == 0.0


cdef inline double larger(double x, double y) noexcept nogil:
    return x if x > y else y


cdef inline double smaller(double x, double y) noexcept nogil:
    return x if x < y else y


cdef inline Pair both(double x) noexcept nogil:
    return make_pair(x, x)


cdef inline Pair soft(Pair z, Pair T) noexcept nogil:
    """S(z, T) = -sgn(z) (|z| - T)_+."""
    return subtract(maximum(minimum(z, T), subtract(both(0.0), T)), z)


cdef inline double threshold(double norm, const Strengths* strengths) noexcept nogil:
    """T = l1 t + min(sqrt G, 30 l1 t)."""
    return strengths.threshold + smaller(norm, strengths.margin)


cdef inline Pair penalty_of(Pair w, const Strengths* strengths) noexcept nogil:
    """Psi(w) = l1 |w| + l2 / 2 w^2."""
    cdef Pair size = absolute(w)
    return multiply(size, add(load(strengths.l1), multiply(load(strengths.half_l2), size)))


cdef inline Pair masked(
    Pair steady, Pair moved, int voters, const Strengths* strengths
) noexcept nogil:
    """Return `moved` (newton, follower) with the follower at 0 where no voter is non-zero."""
    cdef int seen = nonzero_bits(steady) | nonzero_bits(moved) << NEWTON
    return multiply(moved, load(strengths.masks + (2 if seen & voters else 0)))


cdef inline Pair ridged(Pair w, Pair inverse, Pair l2) noexcept nogil:
    """Return S / (D + l2), given w = S / D and 1 / D."""
    return divide(w, add(both(1.0), multiply(l2, inverse)))


cdef inline void weigh(
    const Slot* slot, double x, int voters, const Strengths* strengths, double* w
) noexcept nogil:
    """Set the weights of all members for a feature of size x."""
    cdef double T = threshold(slot.norm[0], strengths), idle = strengths.t - slot.last
    cdef double s = slot.size
    cdef Pair steady, moved, D, inverse = load(slot.inverse)
    if x > slot.coin_largest:
        inverse = make_pair(first(inverse), slot.wealth / (x * (slot.absolute + x)))
    steady = multiply(soft(load(slot.z), both(T)), inverse)
    # k events without a gradient move the follower by the prox of k Psi / D
    moved = soft(load(slot.z + NEWTON), make_pair(T, idle * strengths.l1[0]))
    D = make_pair(NEWTON_PRIOR * s * s + slot.curvature + LEAST, slot.D[1] + LEAST)
    if strengths.l2 > 0.0:
        steady = ridged(steady, inverse, both(strengths.ridge))
        D = add(D, make_pair(strengths.ridge, idle * strengths.l2))
    moved = masked(steady, divide(moved, D), voters, strengths)
    store(w, steady)
    store(w + NEWTON, moved)
    w[AVERAGE] = second(select_nonzero(moved, both(slot.average)))


cdef inline Pair learn_steady(
    Feature* feature, const Strengths* strengths, const double* g, Pair pace
) noexcept nogil:
    """Update sizes and norms, learn adaptive and coin; return x^2 / D of newton and follower."""
    cdef Slot* slot = feature.slot
    cdef double x = feature.x, m = fabs(x), before = slot.size, idle = strengths.t - slot.last
    cdef double s, v, T
    cdef Pair gx, scale, D, w, inverse
    # s = (sum sqrt|x| / count)^2
    slot.largest = larger(slot.largest, m)
    slot.count += 1.0
    slot.roots += sqrt(m)
    w = divide(make_pair(slot.roots, slot.count - 1.0), make_pair(slot.count, slot.count + DECAY))
    s = slot.size = first(w) * first(w)
    feature.kept = second(w)
    # G += (g x)^2,  D / s = sqrt(G) / (rate pace) of adaptive and follower
    gx = multiply(make_pair(g[ADAPTIVE], g[FOLLOWER]), both(x))
    w = load(slot.norm)
    w = square_root(add(multiply(w, w), multiply(gx, gx)))
    store(slot.norm, w)
    T = threshold(first(w), strengths)
    store(feature.thresholds, make_pair(T, strengths.l1[0]))
    scale = multiply(w, pace)
    # D w, where s w stays as it was before the size changed
    w = multiply(multiply(scale, both(before)), make_pair(feature.w[ADAPTIVE], feature.w[FOLLOWER]))
    feature.start = second(w)
    v = first(w) - slot.D[0] * feature.w[ADAPTIVE]
    scale = multiply(scale, both(s))
    store(slot.D, scale)
    D = make_pair(NEWTON_PRIOR * s * s + slot.curvature, second(scale))
    store(feature.inverse, select_nonzero(D, divide(both(1.0), D)))
    # z += g x, less (D_new - D) w for adaptive
    gx = multiply(load(g), both(x))
    w = add(load(slot.z), subtract(gx, make_pair(v, 0.0)))
    store(slot.z, w)
    w = soft(w, both(T))
    # A += |g x|,  W = max(1, W - g x w - l1 |w| idle)
    v = second(absolute(gx))
    slot.absolute += v
    slot.coin_largest = m = larger(slot.coin_largest, larger(m, v))
    v = second(gx) * feature.w[COIN] + strengths.l1[0] * fabs(feature.w[COIN]) * idle
    slot.wealth = larger(1.0, slot.wealth - v)
    D = make_pair(first(scale), m * (slot.absolute + m))
    inverse = divide(make_pair(1.0, slot.wealth), add(D, both(LEAST)))
    store(slot.inverse, inverse)
    w = multiply(w, inverse)
    if strengths.l2 > 0.0:
        w = ridged(w, inverse, both(strengths.ridge))
    store(feature.w, w)
    return multiply(both(x * x), load(feature.inverse))


cdef inline void learn_moved(
    Feature* feature, const Strengths* strengths, int voters, Pair h, double bend,
    Pair* charges,
) noexcept nogil:
    """Learn newton, follower and average; add to the penalties what they change by."""
    cdef Slot* slot = feature.slot
    cdef double x = feature.x, b = bend * x * x
    cdef Pair inverse = load(feature.inverse), steady = load(feature.w), z, w, moved, average
    # newton: z += h x;  follower: D w - h x, whose prox has the threshold l1
    z = add(make_pair(slot.z[NEWTON], -feature.start), multiply(h, both(x)))
    w = soft(z, load(feature.thresholds))
    w = multiply(w, inverse)
    if strengths.l2 > 0.0:
        w = ridged(w, inverse, make_pair(strengths.ridge, strengths.l2))
    # newton: D += b, z -= b w, so that w stays
    store(slot.z + NEWTON, make_pair(first(z) - b * first(w), -slot.D[1] * second(w)))
    slot.curvature += b
    moved = masked(steady, w, voters, strengths)
    # average starts at the follower, and again after every zero
    average = both(slot.average)
    w = select_nonzero(average, multiply(both(feature.kept), subtract(average, moved)))
    w = select_nonzero(moved, add(moved, w))
    slot.average = second(w)
    charges[2] = add(charges[2], penalty_of(make_pair(second(w), first(average)), strengths))
    slot.last = strengths.t
    w = penalty_of(steady, strengths)
    charges[0] = add(charges[0], subtract(w, load(slot.penalty)))
    store(slot.penalty, w)
    w = penalty_of(moved, strengths)
    charges[1] = add(charges[1], subtract(w, load(slot.penalty + NEWTON)))
    store(slot.penalty + NEWTON, w)
