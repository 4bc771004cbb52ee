r"""Sort and pool adjacent violators inside hyperedges, in torch: any device and dtype.

**Layout.** Every (hyperedge, column) is a row of its own, hyperedges of similar size together. A row holds the values
of one hyperedge and one column, padded to the next power of two, so that sorting, running sums and scatters act along
one dense axis and no hyperedge can touch another. At most half of a row is padding. Groups are cut so that a temporary
of one group stays small.

**Pooling.** A block of places is kept as sums: its weight $n$, the weighted sum of $s$ and, for a tilted sequence
$s - \tau y$, the sums of $y$ and $|y|$. In a round every stretch of blocks that does not fall is pooled; such blocks
share one value in the answer, so rounds may pool as much as they see. They end when every problem falls, in practice
after a few.
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
        """Return the real rows of the result, in the order of ``rows[is_real]``."""
        return found.view(len(self.edges), self.num_columns, -1).transpose(1, 2)[self.is_real]


def groups(edge_ptr: Int[Tensor, " E_plus_1"], num_columns: int) -> Iterator[Group]:
    """Return the hyperedges that have rows, in groups of similar size; at most one size class per power of two."""
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
    """Return the problems with a number that is not finite; their result is NaN and must not affect the others."""
    return torch.stack([~entries.isfinite().all(1, keepdim=True) for entries in inputs]).any(0)


def sorted_order(entries: Float[Tensor, "P K"], real: Bool[Tensor, "P K"]) -> Int[Tensor, "P K"]:
    """Return the places of each problem in descending order, ties by place, padding last."""
    keys = entries.detach().masked_fill(~real, -torch.inf)
    return torch.sort(keys, dim=1, descending=True, stable=True).indices


def stack_sums(
    s: Float[Tensor, "P K"], weight: Float[Tensor, "P K"], y: Float[Tensor, "P K"] | None = None
) -> Float[Tensor, "P K C"]:
    """Return the sums of single places: weight, weighted s and, with a tilt, y and |y|. Padding has weight 0."""
    channels = [weight, weight * s] if y is None else [weight, weight * s, y, y.abs()]
    return torch.stack(channels, 2)


def block_sums(places: Float[Tensor, "P K C"], block: Int[Tensor, "P K"]) -> Float[Tensor, "P K C"]:
    """Return the sums of blocks, given the block of each place; blocks that do not exist have weight 0."""
    return torch.zeros_like(places).scatter_add(1, block.unsqueeze(2).expand_as(places), places)


def mean_tilt(sums: Float[Tensor, "P K C"]) -> Float[Tensor, "P K"]:
    """Mean of y in each block, 0 where the sum of y is nothing but rounding (its derivative is kept)."""
    size, tilt, tilt_size = sums[..., 0], sums[..., 2], sums[..., 3]
    is_noise = tilt.abs() <= size * torch.finfo(sums.dtype).eps * tilt_size
    return (tilt - torch.where(is_noise, tilt.detach(), 0.0)) / size.masked_fill(size == 0, 1.0)


def block_values(sums: Float[Tensor, "P K C"], tau: Float[Tensor, "P 1"] | None) -> Float[Tensor, "P K"]:
    """Return the common value of each block."""
    value = sums[..., 1] / sums[..., 0].masked_fill(sums[..., 0] == 0, 1.0)
    return value if tau is None else value - tau * mean_tilt(sums)


@torch.no_grad()
def pool(places: Float[Tensor, "P K C"], tau: Float[Tensor, "P 1"] | None) -> Int[Tensor, "P K"]:
    r"""Return the block of each place in the projection of $s - \tau y$ onto non-increasing sequences."""
    block = torch.arange(places.shape[1], device=places.device).expand(places.shape[:2]).clone()
    problem = torch.arange(len(places), device=places.device)
    sums = places
    while True:
        value = block_values(sums, tau)
        joins = (value[:, :-1] <= value[:, 1:]) & (sums[:, 1:, 0] > 0)
        moving = joins.any(1).nonzero().squeeze(1)
        if len(moving) == 0:
            return block
        sums, joins, problem = (part.index_select(0, moving) for part in (sums, joins, problem))
        tau = None if tau is None else tau[moving]
        onto = torch.nn.functional.pad((~joins).long().cumsum(1), (1, 0))
        block[problem] = onto.gather(1, block[problem])
        sums = block_sums(sums, onto)


def segment_sort(values: Float[Tensor, "I D"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Int[Tensor, "I D"]:
    """See `edhnn.kernels.segment_sort`."""
    if values.numel() == 0:
        return torch.empty(values.shape, dtype=torch.int64, device=values.device)

    def solve(group: Group) -> Int[Tensor, "P K"]:
        order = sorted_order(group.entries(values), group.real)
        first = group.per_edge(edge_ptr[:-1].long())
        return torch.where(group.real, first + order, 0)

    return over_segments(values, edge_ptr, solve)


def segment_pav(
    values: Float[Tensor, "I D"],
    edge_ptr: Int[Tensor, " E_plus_1"],
    weight: Float[Tensor, " I"] | Float[Tensor, "I D"] | None,
) -> Float[Tensor, "I D"]:
    """See `edhnn.kernels.segment_pav`; differentiable in values and weight, as pooled means are."""
    if values.numel() == 0:
        return values.clone()
    wide = widened(values)
    wide_weight = torch.ones_like(wide[:, 0]) if weight is None else widened(weight)

    def solve(group: Group) -> Float[Tensor, "P K"]:
        s = group.entries(wide)
        w = group.per_row(wide_weight) if wide_weight.dim() == 1 else group.entries(wide_weight)
        wrong = spoiled(s, w)
        places = stack_sums(s.masked_fill(wrong, 0.0), torch.where(wrong, group.real.to(w.dtype), w))
        block = pool(places, None)
        pooled = block_values(block_sums(places, block), None).gather(1, block)
        return pooled.masked_fill(wrong, torch.nan)

    return over_segments(wide, edge_ptr, solve).to(values.dtype)
