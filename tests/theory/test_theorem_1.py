"""Theorem 1, constructively: an equivariant function is rho(z_i, sum_j phi(z_j)), phi the powers up to K.

The power sums determine the multiset: Newton's identities turn them into the coefficients of the polynomial whose roots
are its members. So rho can recover the other members from the sums less phi(z_i), and evaluate psi.
"""

import numpy as np
import pytest
import torch

from edhnn import Hypergraph, LovaszCardinality, TotalVariation


def phi(z, largest):
    return z ** np.arange(1, largest + 1)


def coefficients(sums):
    """Return the monic polynomial whose roots have these power sums, highest power first (Newton's identities)."""
    elementary = [1.0]
    for k in range(1, len(sums) + 1):
        terms = [(-1) ** (i - 1) * elementary[k - i] * sums[i - 1] for i in range(1, k + 1)]
        elementary.append(sum(terms) / k)
    return np.array([(-1) ** k * e for k, e in enumerate(elementary)])


def multiset(sums):
    """Return the real numbers, in ascending order, with these power sums."""
    return np.sort(np.roots(coefficients(sums)).real) if len(sums) else np.zeros(0)


def rho(psi, z_i, sums):
    """Return rho(x, y) = tau(x, Phi^{-1}(y - phi(x))), tau(x, rest) = psi(x, rest)_1 (step 3 of the proof)."""
    rest = multiset((sums - phi(z_i, len(sums)))[: len(sums) - 1])
    return psi(np.concatenate([[z_i], rest]))[0]


def through_edhnn(potential, operator):
    def psi(z):
        one = Hypergraph.from_hyperedges([range(len(z))])
        values = torch.from_numpy(np.asarray(z, dtype=np.float64))[:, None]
        if operator == "grad":
            return potential.grad(values, one)[:, 0].numpy()
        return potential.prox(values, one, step_size=0.5)[:, 0].numpy()

    return psi


def softmax(z):
    e = np.exp(3 * z)
    return e / e.sum()


def ranked(z):
    """Return each entry times a rank-weighted sum of the sorted entries, less its distance to the median."""
    s = np.sort(z)
    return z * (s @ np.arange(1, len(z) + 1)) / len(z) - np.abs(z - np.median(z))


FUNCTIONS = {
    "lec-2-grad": through_edhnn(LovaszCardinality(power=2), "grad"),
    "lec-2-prox": through_edhnn(LovaszCardinality(power=2), "prox"),
    "tv-2-prox": through_edhnn(TotalVariation(power=2), "prox"),
    "softmax": softmax,
    "ranked": ranked,
}


def separated(rng, size):
    """Draw a point of [0, 1]^K whose unsorted entries differ by at least 0.05."""
    while True:
        z = rng.random(size)
        if size < 2 or np.diff(np.sort(z)).min() > 0.05:
            return z


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_power_sums_determine_the_multiset(size):
    rng = np.random.default_rng(size)
    for _ in range(20):
        z = separated(rng, size)
        sums = sum(phi(entry, size) for entry in z)
        np.testing.assert_allclose(multiset(sums), np.sort(z), atol=1e-9)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_equivariant_function_is_rho_of_a_sum(name, size):
    psi, rng = FUNCTIONS[name], np.random.default_rng(10 * size)
    for _ in range(10):
        z = separated(rng, size)
        sums = sum(phi(entry, size) for entry in z)  # one sum for all entries
        np.testing.assert_allclose([rho(psi, entry, sums) for entry in z], psi(z), atol=1e-6)


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - {"lec-2-grad"}))  # it jumps at ties
def test_the_form_also_holds_at_ties(name):
    """A double root halves the correct digits of the continuous inverse, which suffices for a continuous psi."""
    psi = FUNCTIONS[name]
    z = np.array([0.3, 0.8, 0.3, 0.6])
    sums = sum(phi(entry, 4) for entry in z)
    np.testing.assert_allclose([rho(psi, entry, sums) for entry in z], psi(z), atol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_form_is_equivariant(name):
    psi, rng = FUNCTIONS[name], np.random.default_rng(7)
    z = separated(rng, 5)
    order = rng.permutation(5)
    np.testing.assert_allclose(psi(z[order]), psi(z)[order], atol=1e-12)
    sums = sum(phi(entry, 5) for entry in z)
    form = np.array([rho(psi, entry, sums) for entry in z])
    np.testing.assert_allclose([rho(psi, entry, sums) for entry in z[order]], form[order], atol=1e-12)


def test_fewer_sums_do_not_suffice():
    """{0.1, 0.5, 0.9} and another triple have the same first two power sums, so that three are needed."""
    one, other = np.array([0.1, 0.5, 0.9]), multiset(np.array([1.5, 1.07, 0.86]))
    assert other.min() > 0
    assert other.max() < 1
    for power in (1, 2):
        assert (one**power).sum() == pytest.approx((other**power).sum())
    assert np.abs(one - other).max() > 0.01
