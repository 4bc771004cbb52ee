"""The kernels from their definitions: one segment and column at a time, in exact rational arithmetic.

Each proximal reference asserts, without rounding, the conditions that define its answer; a wrong search cannot pass.
Functions take and return lists of `Fraction`.
"""

from fractions import Fraction
from itertools import combinations, pairwise, permutations, product

import torch

HALF = Fraction(1, 2)


def over_segments(reference, values, edge_ptr, *others):
    """Apply a reference to every segment and column; `others` are per row, per entry or `PerEdge`."""
    out = torch.empty(values.shape, dtype=torch.float64)
    bounds = edge_ptr.tolist()
    for e, (start, stop) in enumerate(pairwise(bounds)):
        for d in range(values.shape[1]):
            parts = [part(other, e, start, stop, d) for other in others]
            found = reference([Fraction(x) for x in values[start:stop, d].tolist()], *parts)
            out[start:stop, d] = torch.tensor([float(x) for x in found], dtype=torch.float64)
    return out


def part(other, e, start, stop, d):
    if isinstance(other, PerEdge):
        return Fraction(other.values[e].item())
    return [Fraction(x) for x in (other[start:stop] if other.dim() == 1 else other[start:stop, d]).tolist()]


class PerEdge:
    """Marks a tensor as one number per hyperedge."""

    def __init__(self, values):
        self.values = values


def pav(s, w=None):
    """min over z_1 >= ... >= z_k of sum w (z - s)^2: z_i = min over j <= i of max over m >= i of mean(s_j .. s_m)."""
    w = w or [Fraction(1)] * len(s)

    def mean(j, m):
        return sum(a * b for a, b in zip(w[j : m + 1], s[j : m + 1], strict=True)) / sum(w[j : m + 1])

    return [min(max(mean(j, m) for m in range(i, len(s))) for j in range(i + 1)) for i in range(len(s))]


def total_variation(power):
    """min over z of step (max z - min z)^power + 1/2 sum w (z - a)^2."""

    def prox(a, step, w=None):
        if len(a) < 2:
            return a
        w = w or [Fraction(1)] * len(a)
        mean = sum(x * y for x, y in zip(w, a, strict=True)) / sum(w)
        most = sum(x * max(y - mean, Fraction(0)) for x, y in zip(w, a, strict=True))  # beyond it z is constant
        t = step if power == 1 else root_for_power_two(a, w, step, most)
        if t >= most:
            return [mean] * len(a)
        high, low = level(a, w, t), -level([-x for x in a], w, t)
        z = [min(max(x, low), high) for x in a]
        assert_total_variation_optimal(a, w, z, step, power)
        return z

    return prox


def level(a, w, t):
    """The h with sum w (a - h)_+ = t."""
    pairs = sorted(zip(a, w, strict=True), reverse=True)
    weight = total = Fraction(0)
    for j, (x, y) in enumerate(pairs):
        weight, total = weight + y, total + x * y
        h = (total - t) / weight
        if j + 1 == len(pairs) or pairs[j + 1][0] <= h:
            return h
    raise AssertionError


def root_for_power_two(a, w, step, most):
    if step == 0 or most == 0:
        return Fraction(0)
    both = [level(a, w, most), -level([-x for x in a], w, most)]
    assert both[0] == both[1]
    budgets = {most, Fraction(0)}
    for x in a:  # the breakpoints: budgets at which a level reaches a value
        budgets.add(sum(v * max(y - x, Fraction(0)) for v, y in zip(w, a, strict=True)))
        budgets.add(sum(v * max(x - y, Fraction(0)) for v, y in zip(w, a, strict=True)))
    budgets = sorted(t for t in budgets if t <= most)

    def excess(t):
        return level(a, w, t) + level([-x for x in a], w, t) - t / (2 * step)

    for left, right in pairwise(budgets):
        if excess(right) <= 0:
            at_left, at_right = excess(left), excess(right)
            root = left + (right - left) * at_left / (at_left - at_right) if at_left > 0 else left
            assert excess(root) == 0
            return root
    raise AssertionError


def assert_total_variation_optimal(a, w, z, step, power):
    """0 is a subgradient: pulls are positive on the maximum, negative on the minimum, and sum to the slope."""
    high, low = max(z), min(z)
    pull = [v * (x - y) for v, x, y in zip(w, a, z, strict=True)]
    slope = step if power == 1 else 2 * step * (high - low)
    for p, x in zip(pull, z, strict=True):
        assert (p >= 0 or x == low) and (p <= 0 or x == high)
    if high > low:
        assert sum(p for p, x in zip(pull, z, strict=True) if x == high) == slope
        assert sum(p for p, x in zip(pull, z, strict=True) if x == low) == -slope


def cardinality(power):
    """min over z of step <y, sort_descending(z)>^power + 1/2 |z - a|^2."""

    def prox(a, step, y):
        order = sorted(range(len(a)), key=lambda i: -a[i])
        s = [a[i] for i in order]
        tau = step if power == 1 else tilt_for_power_two(s, y, step)
        z = [Fraction(0)] * len(a)
        for i, x in zip(order, tilted(s, y, tau), strict=True):
            z[i] = x
        return z

    return prox


def tilted(s, y, tau):
    return pav([a - tau * b for a, b in zip(s, y, strict=True)])


def tilt_for_power_two(s, y, step):
    """The root of <y, z(tau)> = tau / (2 step): a bracket is halved until it lies on one linear piece."""

    def excess(tau):
        return sum(a * b for a, b in zip(y, tilted(s, y, tau), strict=True)) - tau / (2 * step)

    if step == 0:
        return Fraction(0)
    left, right = sorted([Fraction(0), 2 * step * sum(a * b for a, b in zip(y, s, strict=True))])
    assert excess(left) >= 0 >= excess(right)
    while True:
        for tau in (left, right, root_of_piece(s, y, step, left), root_of_piece(s, y, step, right), (left + right) / 2):
            if excess(tau) == 0:
                return tau
            if left < tau < right:
                left, right = (tau, right) if excess(tau) > 0 else (left, tau)


def root_of_piece(s, y, step, tau):
    """The root, if the blocks at ``tau`` were those at the root."""
    z = tilted(s, y, tau)
    a = b = Fraction(0)
    for value in set(z):
        places = [i for i, x in enumerate(z) if x == value]
        total = sum(y[i] for i in places)
        a += total * sum(s[i] for i in places) / len(places)
        b += total * total / len(places)
    return 2 * step * a / (1 + 2 * step * b)


def weighted_cardinality(power):
    """min over z of step <y, sort_descending(z)>^power + 1/2 sum w (z - a)^2, for y that falls (and sums to 0)."""

    def prox(a, step, y, w):
        tau = step if power == 1 or step == 0 else weighted_tilt_for_power_two(a, w, y, step)
        z = split(a, w, y, tau)
        assert_in_subdifferential([p * (q - x) for p, q, x in zip(w, a, z, strict=True)], z, y, tau)
        assert power == 1 or tau == 2 * step * cut(z, y)
        return z

    return prox


def cut(z, y):
    return sum(p * q for p, q in zip(y, sorted(z, reverse=True), strict=True))


def split(a, w, y, tau):
    """Blocks are cut in two by the best of all their subsets, until none is better than nothing."""
    z, waiting = list(a), [(list(range(len(a))), 0)] if a else []
    while waiting:
        block, first = waiting.pop()
        level = sum(w[i] * a[i] for i in block) - tau * sum(y[first : first + len(block)])
        level /= sum(w[i] for i in block)

        def excess(part, first=first, level=level):
            return sum(w[i] * (a[i] - level) for i in part) - tau * sum(y[first : first + len(part)])

        best = max((part for k in range(len(block)) for part in combinations(block, k)), key=excess)
        if excess(best) > 0:
            waiting += [(list(best), first), ([i for i in block if i not in best], first + len(best))]
        else:
            for i in block:
                z[i] = level
    return z


def assert_in_subdifferential(r, z, y, tau):
    """r is in tau times the permutahedron of y and attains the maximum tau <y, sort(z)> there: all that is needed."""
    ordered = sorted(r, reverse=True)
    for k in range(len(r) + 1):
        assert sum(ordered[:k]) <= tau * sum(y[:k])
    assert sum(r) == tau * sum(y)
    assert sum(p * q for p, q in zip(r, z, strict=True)) == tau * cut(z, y)


def weighted_tilt_for_power_two(a, w, y, step):
    """The root of <y, sort(z(tau))> = tau / (2 step), as `tilt_for_power_two` finds it."""

    def excess(tau):
        return cut(split(a, w, y, tau), y) - tau / (2 * step)

    def root_of_piece(tau):
        delta = Fraction(1, 2**200)  # z(tau) is a line to the right of tau
        slope = (excess(tau + delta) - excess(tau)) / delta
        return tau - excess(tau) / slope

    left, right = Fraction(0), 2 * step * cut(a, y)
    assert excess(left) >= 0 >= excess(right)
    while True:
        for tau in (left, right, root_of_piece(left), root_of_piece(right), (left + right) / 2):
            if excess(tau) == 0:
                return tau
            if left < tau < right:
                left, right = (tau, right) if excess(tau) > 0 else (left, tau)


def cardinality_objective(a, z, step, power, y):
    t = sum(b * x for b, x in zip(y, sorted(z, reverse=True), strict=True))
    return step * t**power + HALF * sum((p - q) ** 2 for p, q in zip(z, a, strict=True))


def cardinality_minimum(a, step, power, y):
    """The least objective over every order of the members and every way of pooling neighbours; for tiny segments."""
    best = None
    for order in permutations(range(len(a))):
        for cuts in product([False, True], repeat=len(a) - 1):
            blocks = [[order[0]]]
            for i, cut in zip(order[1:], cuts, strict=True):
                if cut:
                    blocks.append([])
                blocks[-1].append(i)
            sizes = [len(block) for block in blocks]
            means = [sum(a[i] for i in block) / len(block) for block in blocks]
            ends = [sum(sizes[: b + 1]) for b in range(len(sizes))]
            tilts = [sum(y[end - size : end]) / size for end, size in zip(ends, sizes, strict=True)]
            slope = sum(n * m * t for n, m, t in zip(sizes, means, tilts, strict=True))
            curve = sum(n * t * t for n, t in zip(sizes, tilts, strict=True))
            tau = step if power == 1 else 2 * step * slope / (1 + 2 * step * curve)
            levels = [m - tau * t for m, t in zip(means, tilts, strict=True)]
            if sorted(levels, reverse=True) == levels:
                z = list(a)
                for block, x in zip(blocks, levels, strict=True):
                    for i in block:
                        z[i] = x
                value = cardinality_objective(a, z, step, power, y)
                best = value if best is None else min(best, value)
    return best
