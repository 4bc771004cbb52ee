"""The layout of the torch kernels: every (hyperedge, column) a row of its own, hyperedges of similar size together.

A row holds the values of one hyperedge and one column, padded to the next power of two, so that sorting, running sums
and scatters act along one dense axis and no hyperedge can touch another. At most half of a row is padding. Groups are
cut so that a temporary of one group stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

GROUP_ENTRIES = 1 << 20
"""Entries of a group, padding included; a hyperedge too large for it makes a group of its own."""


@dataclass(frozen=True, slots=True)
class Group:
    """Hyperedges of similar size: ``B`` of them, padded to ``K`` rows, ``P = B D`` problems.

    Args:
        edges: The hyperedges.
        rows: Their rows; padding repeats the first.
        is_real: Which places are not padding: a stretch at the left.
        num_columns: ``D``.
    """

    edges: Int[Tensor, " B"]
    rows: Int[Tensor, "B K"]
    is_real: Bool[Tensor, "B K"]
    num_columns: int

    def entries(self, values: Shaped[Tensor, "I D"]) -> Shaped[Tensor, "P K"]:
        """Values of incidences and columns, zero in the padding."""
        filled = torch.where(self.is_real.unsqueeze(2), values[self.rows], values.new_zeros(()))
        return filled.transpose(1, 2).flatten(0, 1)

    def per_row(self, values: Shaped[Tensor, " I"]) -> Shaped[Tensor, "P K"]:
        """Values of incidences, the same for every column, zero in the padding."""
        filled = torch.where(self.is_real, values[self.rows], values.new_zeros(()))
        return filled.repeat_interleave(self.num_columns, 0)

    def per_edge(self, values: Shaped[Tensor, " E"]) -> Shaped[Tensor, "P 1"]:
        """Values of hyperedges, the same for every column."""
        return values[self.edges].repeat_interleave(self.num_columns).unsqueeze(1)

    @property
    def real(self) -> Bool[Tensor, "P K"]:
        """Which places of each problem are not padding."""
        return self.is_real.repeat_interleave(self.num_columns, 0)

    def collect(self, found: Shaped[Tensor, "P K"]) -> Shaped[Tensor, "R D"]:
        """The real rows of what was found, in the order of ``rows[is_real]``."""
        return found.view(len(self.edges), self.num_columns, -1).transpose(1, 2)[self.is_real]


def groups(edge_ptr: Int[Tensor, " E_plus_1"], num_columns: int) -> Iterator[Group]:
    """The hyperedges that have rows, in groups of similar size; at most one size class per power of two."""
    size = edge_ptr.diff()
    largest = int(size.max()) if len(size) else 0
    width, narrower = 1, 0
    while narrower < largest:
        edges = ((size > narrower) & (size <= width)).nonzero().squeeze(1)
        place = torch.arange(width, device=edge_ptr.device)
        for part in torch.split(edges, max(1, GROUP_ENTRIES // (width * num_columns))) if len(edges) else ():
            is_real = place < size[part].unsqueeze(1)
            yield Group(part, edge_ptr[part].unsqueeze(1) + place * is_real, is_real, num_columns)
        width, narrower = 2 * width, width


def over_segments(
    values: Shaped[Tensor, "I D"],
    edge_ptr: Int[Tensor, " E_plus_1"],
    solve: Callable[[Group], Shaped[Tensor, "P K"]],
) -> Shaped[Tensor, "I D"]:
    """Solve group by group and put the rows back into their order; ``values`` must not be empty."""
    found, rows = [], []
    for group in groups(edge_ptr, values.shape[1]):
        found.append(group.collect(solve(group)))
        rows.append(group.rows[group.is_real])
    order = torch.cat(rows)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device)
    return torch.cat(found)[place]


def widened(values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """In double precision, as the native kernels compute; Apple's GPUs have none and stay with single."""
    return values.to(torch.float32 if values.device.type == "mps" else torch.float64)


def spoiled(*inputs: Float[Tensor, "P _"]) -> Bool[Tensor, "P 1"]:
    """The problems with a number that is not finite; their answer is NaN and they must not disturb others."""
    return torch.stack([~entries.isfinite().all(1, keepdim=True) for entries in inputs]).any(0)


def sorted_order(entries: Float[Tensor, "P K"], real: Bool[Tensor, "P K"]) -> Int[Tensor, "P K"]:
    """The places of each problem in descending order, ties by place, padding last."""
    keys = entries.detach().masked_fill(~real, -torch.inf)
    return torch.sort(keys, dim=1, descending=True, stable=True).indices
