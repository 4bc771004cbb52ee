"""Hyperedge potentials by name. To add one, write its module and add a line here."""

from __future__ import annotations

from typing import Protocol

from edhnn.errors import unknown_name
from edhnn.potentials.base import HyperedgePotential
from edhnn.potentials.clique import CliqueExpansion
from edhnn.potentials.divergence import DivergenceToMean
from edhnn.potentials.lovasz import LovaszCardinality
from edhnn.potentials.total_variation import TotalVariation


class PotentialClass(Protocol):
    """The class of a potential that can be made from a power alone."""

    def from_power(self, power: int) -> HyperedgePotential:
        """Make the potential; raise `UsageError` if it does not have this power."""


POTENTIALS: dict[str, PotentialClass] = {
    "ce": CliqueExpansion,
    "divergence": DivergenceToMean,
    "tv": TotalVariation,
    "lec": LovaszCardinality,
}
"""Every hyperedge potential by its short name."""


def make_potential(name: str, power: int = 2) -> HyperedgePotential:
    """Make a hyperedge potential by its short name.

    Args:
        name: ``ce`` clique expansion, ``divergence`` to the mean, ``tv`` total variation, ``lec`` Lovász extension of
            the paper's cardinality cut (`POTENTIALS`).
        power: $p$: 1 or 2 for ``tv`` and ``lec``, at least 1 for ``divergence``, 2 for ``ce``.

    Raises:
        UsageError: if the name is unknown, or if the potential does not have this power.
    """
    if name not in POTENTIALS:
        raise unknown_name("potential", name, POTENTIALS)
    return POTENTIALS[name].from_power(power)
