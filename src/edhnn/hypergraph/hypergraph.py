r"""The hypergraph: an immutable value that is validated once and stores its counts.

$\mathcal{G} = (V, E)$ with hyperedges $e \subseteq V$ is stored in its bipartite (star) form: one pair $(v, e)$ per
membership, sorted by hyperedge and then by node. Both compressed orders are derived once:

    members of e:      node_index[edge_ptr[e] : edge_ptr[e + 1]]
    hyperedges of v:   edge_index[node_order[node_ptr[v] : node_ptr[v + 1]]]

Counts are stored, never inferred from the largest index, so that isolated nodes and empty hyperedges are allowed.
Singleton and repeated hyperedges, more hyperedges than nodes, and no hyperedges are allowed too.
Paper: Definition 1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, TypeVar, final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from jaxtyping import Float, Int
from torch import Tensor

from edhnn.errors import DataError
from edhnn.notebook import table

Made = TypeVar("Made")


def node_numbers(members: list[list[Any]]) -> npt.NDArray[np.int64]:
    """Concatenate the members of all hyperedges; raise `DataError` for anything but a 64-bit integer."""
    flat = [v for hyperedge in members for v in hyperedge]
    with suppress(ValueError):  # numpy raises it if members are lists of several lengths
        numbers = np.array(flat)
        integers = numbers.dtype.kind == "i" and not {bool, np.bool_} & set(map(type, flat))
        if numbers.ndim == 1 and (integers or not flat):
            return numbers.astype(np.int64, copy=False)
    for edge, v in ((edge, v) for edge, hyperedge in enumerate(members) for v in hyperedge):
        if isinstance(v, bool) or not isinstance(v, int | np.integer) or not -(2**63) <= v < 2**63:
            raise DataError(
                f"Every member of a hyperedge must be a node number, a 64-bit integer. Got {v!r}.",
                where=f"hyperedge {edge}",
                remedy="Number the nodes from 0 and pass their names as NodeDataset(node_ids=edhnn.Ids([...])), or "
                "read a table of names with edhnn.read_dataset.",
            )
    return np.array([int(v) for v in flat], dtype=np.int64)  # from unsigned integers


def checked_index(name: str, index: Tensor) -> Tensor:
    """Check that the index is a vector of integers, and detach it."""
    if index.is_floating_point() or index.is_complex() or index.dtype == torch.bool or index.dim() != 1:
        shape = tuple(index.shape)
        raise DataError(f"'{name}' must be a vector of integers. Got {index.dtype} of shape {shape}.")
    return index.detach()


def check_range(kind: str, index: Tensor, count: int) -> None:
    """Check that the count is not negative and that every number is below it."""
    if count < 0:
        raise DataError(f"The number of {kind}s must be 0 or more. Got {count}.")
    if len(index) and not (int(index.min()) >= 0 and int(index.max()) < count):
        first = int(((index < 0) | (index >= count)).nonzero()[0, 0])
        raise DataError(
            f"Every {kind} number must lie in 0..{count - 1}, because there are {count} {kind}s. "
            f"Got {int(index[first])} at incidence {first}.",
            remedy=f"Raise the number of {kind}s, or renumber from 0.",
        )


def checked_weight(name: str, weight: Tensor | None, length: int) -> Tensor | None:
    """Check that the weights are finite and not negative, and copy them."""
    if weight is None:
        return None
    if not weight.is_floating_point() or weight.shape != (length,):
        raise DataError(
            f"'{name}' must be {length} floating-point numbers. Got {weight.dtype}, shape {tuple(weight.shape)}."
        )
    invalid = (~(torch.isfinite(weight) & (weight >= 0))).nonzero()
    if len(invalid):
        first = int(invalid[0, 0])
        raise DataError(f"Every '{name}' must be finite and 0 or more. Got {weight[first].item()} at {first}.")
    return weight.detach().clone()


def sorted_and_merged(key: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Sort the keys, if possible in place, and merge equal ones, which keep the largest of their weights."""
    if bool((key[1:] > key[:-1]).all()):
        return key, weight
    if weight is None and key.device.type == "cpu":
        key.numpy().sort()  # in place: torch.sort also makes a copy and the order
    else:
        key, order = torch.sort(key, stable=True)
        weight = None if weight is None else weight[order]
        del order
    first = torch.ones_like(key, dtype=torch.bool)
    torch.ne(key[1:], key[:-1], out=first[1:])
    if bool(first.all()):
        return key, weight
    if weight is not None:
        group = first.cumsum(0) - 1
        weight = weight.new_zeros(int(group[-1]) + 1).scatter_reduce(0, group, weight, "amax")
    return key[first], weight


def group_bounds(index: Tensor, count: int) -> Tensor:
    """Return where each group starts in the sorted index, and where the last one ends."""
    bounds = index.new_zeros(count + 1)
    torch.cumsum(torch.bincount(index, minlength=count), 0, out=bounds[1:])
    return bounds


@final
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Hypergraph:
    """A hypergraph with stored counts, optional weights and both compressed orders.

    The constructor takes incidence pairs in any order. Duplicate memberships are merged and counted in
    ``merged_memberships``. The largest of their weights is kept, a rule that does not depend on the order of the pairs.

    Paper: Definition 1.

    Args:
        node_index: The node of each incidence.
        edge_index: The hyperedge of each incidence.
        num_nodes: Number of nodes, isolated ones included.
        num_edges: Number of hyperedges, empty ones included.
        edge_weight: A non-negative weight per hyperedge; ``None`` means 1 for all.
        incidence_weight: A non-negative weight per incidence, in the order of the pairs given.

    Raises:
        DataError: if an index lies outside its count, lengths differ, or a weight is negative or not finite.

    Example:
        >>> from edhnn import Hypergraph
        >>> baskets = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3], []], num_nodes=5)
        >>> baskets
        Hypergraph(num_nodes=5, num_edges=3, num_incidences=5)
        >>> baskets.degree.tolist(), baskets.edge_size.tolist()
        ([1, 1, 2, 1, 0], [3, 2, 0])
    """

    node_index: Int[Tensor, " I"]
    edge_index: Int[Tensor, " I"]
    num_nodes: int
    num_edges: int
    edge_weight: Float[Tensor, " E"] | None = None
    incidence_weight: Float[Tensor, " I"] | None = None
    merged_memberships: int = field(init=False)
    edge_ptr: Int[Tensor, " E_plus_1"] = field(init=False, repr=False)
    node_ptr: Int[Tensor, " N_plus_1"] = field(init=False, repr=False)
    _derived: dict[Hashable, Any] = field(init=False, repr=False)

    @torch.inference_mode(False)  # a hypergraph made during inference may be used in training later
    def __post_init__(self) -> None:
        node, edge = checked_index("node_index", self.node_index), checked_index("edge_index", self.edge_index)
        if node.shape != edge.shape:
            raise DataError(f"'node_index' and 'edge_index' must be equally long. Got {len(node)} and {len(edge)}.")
        check_range("node", node, self.num_nodes)
        check_range("hyperedge", edge, self.num_edges)
        if self.num_nodes * self.num_edges >= 2**63:
            raise DataError(f"Nodes times hyperedges must be less than 2^63. Got {self.num_nodes} x {self.num_edges}.")
        edge_weight = checked_weight("edge_weight", self.edge_weight, self.num_edges)
        incidence_weight = checked_weight("incidence_weight", self.incidence_weight, len(node))

        key, incidence_weight = sorted_and_merged(edge.long() * self.num_nodes + node, incidence_weight)
        edge_index = torch.div(key, max(self.num_nodes, 1), rounding_mode="floor")
        node_index = key.sub_(edge_index * self.num_nodes)
        self._fill(
            merged_memberships=self.node_index.shape[0] - len(node_index),
            node_index=node_index,
            edge_index=edge_index,
            edge_weight=edge_weight,
            incidence_weight=incidence_weight,
            edge_ptr=group_bounds(edge_index, self.num_edges),
            node_ptr=group_bounds(node_index, self.num_nodes),
            _derived={},
        )

    def _fill(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_hyperedges(
        cls,
        hyperedges: Iterable[Iterable[int]],
        *,
        num_nodes: int | None = None,
        edge_weight: Sequence[float] | Tensor | None = None,
    ) -> Hypergraph:
        """Make a hypergraph from lists of node numbers, one list per hyperedge.

        Args:
            hyperedges: The members of each hyperedge, 0-based. An empty list is an empty hyperedge.
            num_nodes: Number of nodes; by default one more than the largest member.
            edge_weight: A weight per hyperedge.

        Raises:
            DataError: if a member is not an integer, such as a name, or is not below ``num_nodes``.
        """
        members = [list(hyperedge) for hyperedge in hyperedges]
        node = node_numbers(members)
        edge = np.repeat(np.arange(len(members)), [len(hyperedge) for hyperedge in members])
        count = num_nodes if num_nodes is not None else int(node.max(initial=-1)) + 1
        weight = None if edge_weight is None else torch.as_tensor(edge_weight, dtype=torch.float64)
        return cls(torch.from_numpy(node), torch.from_numpy(edge), count, len(members), edge_weight=weight)

    @classmethod
    def from_incidence(
        cls,
        incidence: Int[Tensor, "2 I"],
        *,
        num_nodes: int,
        num_edges: int,
        edge_weight: Float[Tensor, " E"] | None = None,
        incidence_weight: Float[Tensor, " I"] | None = None,
    ) -> Hypergraph:
        """Make a hypergraph from pairs: row 0 the nodes, row 1 the hyperedges (PyG's ``hyperedge_index``)."""
        return cls(incidence[0], incidence[1], num_nodes, num_edges, edge_weight, incidence_weight)

    @classmethod
    def from_scipy(cls, matrix: sp.sparray | sp.spmatrix, *, weighted: bool = False) -> Hypergraph:
        """Make a hypergraph from a nodes x hyperedges incidence matrix.

        Args:
            matrix: Any scipy sparse matrix or array. Every stored entry is a membership, a stored zero included.
            weighted: Keep the entries as incidence weights; otherwise their values are ignored.
        """
        pairs = sp.coo_array(matrix)
        weight = torch.from_numpy(pairs.data.astype(np.float64)) if weighted else None
        node, edge = (torch.from_numpy(index.astype(np.int64)) for index in pairs.coords)
        return cls(node, edge, pairs.shape[0], pairs.shape[1], incidence_weight=weight)

    def to_scipy(self) -> sp.csr_array:
        """Return the nodes x hyperedges incidence matrix; entries are incidence weights, or 1."""
        weight = self.incidence_weight
        data = np.ones(self.num_incidences) if weight is None else weight.double().cpu().numpy()
        order = self.node_order.cpu().numpy()
        edges = self.edge_index.cpu().numpy()[order]
        return sp.csr_array((data[order], edges, self.node_ptr.cpu().numpy()), shape=(self.num_nodes, self.num_edges))

    def to(self, device: torch.device | str) -> Hypergraph:
        """Return the same hypergraph on another device, without checking or sorting it again."""
        copy = object.__new__(Hypergraph)
        for name in (part.name for part in fields(Hypergraph)):
            value = getattr(self, name)
            copy._fill(**{name: value.to(device) if isinstance(value, Tensor) else value})
        copy._fill(_derived={})
        return copy

    @property
    def node_order(self) -> Int[Tensor, " I"]:
        """Incidences sorted by node and then by hyperedge; computed at first use."""

        def make() -> Tensor:
            narrow = self.node_index.int() if self.num_nodes < 2**31 else self.node_index
            return torch.sort(narrow, stable=True).indices

        return self.derive("node order", make)

    def derive(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the result of ``make``, which is called once per key and cached with the hypergraph.

        It is called outside inference mode, because training may use the result later. Nothing is cached while a model
        is traced, because a tensor of a trace is valid only inside it.
        """
        if key in self._derived:
            cached: Made = self._derived[key]
            return cached
        if torch.compiler.is_compiling():
            return make()
        with torch.inference_mode(False), torch.no_grad():
            self._derived[key] = made = make()
        return made

    @property
    def num_incidences(self) -> int:
        """Number of memberships (v, e)."""
        return self.node_index.shape[0]

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.node_index.device

    @property
    def degree(self) -> Int[Tensor, " N"]:
        r"""Hyperedges per node, $d_v$; weights are ignored. Paper: Definition 1."""
        return self.node_ptr.diff()

    @property
    def edge_size(self) -> Int[Tensor, " E"]:
        r"""Nodes per hyperedge, $|e|$. Paper: Definition 1."""
        return self.edge_ptr.diff()

    def hyperedges(self) -> Iterator[list[int]]:
        """Iterate over the members of each hyperedge, in ascending order; meant for small hypergraphs and tests."""
        members, bounds = self.node_index.tolist(), self.edge_ptr.tolist()
        return (members[start:stop] for start, stop in pairwise(bounds))

    def same_as(self, other: Hypergraph) -> bool:
        """Return whether both have the same counts, memberships and weights (``==`` compares identity)."""
        if (self.num_nodes, self.num_edges) != (other.num_nodes, other.num_edges):
            return False
        pairs = (
            (getattr(self, name), getattr(other, name))
            for name in ("node_index", "edge_index", "edge_weight", "incidence_weight")
        )
        return all(a is b if a is None or b is None else torch.equal(a, b) for a, b in pairs)

    def __reduce__(self) -> tuple[Callable[..., Hypergraph], tuple[Any, ...]]:
        """Pickle and copy the hypergraph without what was derived from it, which is made again where it is used."""
        return _restored, tuple(getattr(self, part.name) for part in fields(self) if part.name != "_derived")

    def _repr_html_(self) -> str:
        weights = [name for name in ("edge_weight", "incidence_weight") if getattr(self, name) is not None]
        rows: list[tuple[str, object]] = [
            ("nodes", self.num_nodes),
            ("hyperedges", self.num_edges),
            ("memberships", self.num_incidences),
            ("weights", ", ".join(weights) or "none"),
        ]
        if self.num_incidences and not self.node_index.is_meta:
            rows[3:3] = [
                ("largest hyperedge", int(self.edge_size.max())),
                ("largest degree", int(self.degree.max())),
                ("isolated nodes", int((self.degree == 0).sum())),
            ]
        return table("Hypergraph", rows)

    def __repr__(self) -> str:
        extras = "".join(
            f", {name}=..." for name in ("edge_weight", "incidence_weight") if getattr(self, name) is not None
        )
        counts = f"num_nodes={self.num_nodes}, num_edges={self.num_edges}, num_incidences={self.num_incidences}"
        return f"Hypergraph({counts}{extras})"


def _restored(*parts: object) -> Hypergraph:
    """Return the hypergraph of `Hypergraph.__reduce__`, without checking or sorting it again."""
    hypergraph = object.__new__(Hypergraph)
    for part, value in zip(fields(Hypergraph), (*parts, {}), strict=True):
        object.__setattr__(hypergraph, part.name, value)
    return hypergraph
