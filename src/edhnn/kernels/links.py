r"""Links: which rows and columns are joined, in both compressed orders. The network kernels sum over them.

A link joins a row r to a column s. For a hypergraph, rows are nodes and columns hyperedges, or the other way round; for
a sparse feature matrix, rows are its rows and columns its features. Each order has pointers, the other end of each
link, and the link's number, which identifies its weight and its dropout mask:

    columns of row r:   row_column[row_ptr[r] : row_ptr[r + 1]],   their numbers row_link[...]
    rows of column s:   column_row[column_ptr[s] : column_ptr[s + 1]],   their numbers column_link[...]

Native code trusts these pointers, so they are checked once, here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from edhnn.errors import DataError
from edhnn.hypergraph.hypergraph import Hypergraph, group_bounds


class _kept:  # noqa: N801
    """A property computed at first use and kept; not what a tracer computes, and usable in training in any case."""

    def __init__(self, make: Callable[[Links], Tensor]) -> None:
        self.make, self.name, self.__doc__ = make, make.__name__, make.__doc__

    def __get__(self, links: Links, kind: type[Links]) -> Tensor:
        with torch.inference_mode(False):
            value = self.make(links)
        if not torch.compiler.is_compiling():
            links.__dict__[self.name] = value
        return value


@final
@dataclass(frozen=True, eq=False)
class Links:
    """Links between rows and columns, in the order of the rows and in the order of the columns.

    Args:
        row_ptr: Where each row's links begin, and where the last one's end.
        row_column: The column of each link, in row order.
        row_link: The number of each link, in row order; ``None``: 0, 1, 2, ...
        column_ptr: Where each column's links begin, and where the last one's end.
        column_row: The row of each link, in column order.
        column_link: The number of each link, in column order; ``None``: 0, 1, 2, ...

    Raises:
        DataError: if the two orders do not describe the same links.
    """

    row_ptr: Int[Tensor, " R_plus_1"]
    row_column: Int[Tensor, " I"]
    row_link: Int[Tensor, " I"] | None
    column_ptr: Int[Tensor, " S_plus_1"]
    column_row: Int[Tensor, " I"]
    column_link: Int[Tensor, " I"] | None

    def __post_init__(self) -> None:
        _check_pointers("row_ptr", self.row_ptr, self.num_links)
        _check_pointers("column_ptr", self.column_ptr, self.num_links)
        for name in ("row_column", "row_link", "column_row", "column_link"):
            index = getattr(self, name)
            if index is not None:
                _check_vector(name, index, self.num_links)
        for name in ("row_link", "column_link"):
            numbers = getattr(self, name)
            if numbers is not None and not torch.equal(numbers.sort().values, self.row_place):
                raise DataError(f"'{name}' must number the links 0..{self.num_links - 1}, each once.")
        same_columns = torch.equal(self.row_column[self.column_place], _owners(self.column_ptr))
        if not same_columns or not torch.equal(self.row_index[self.column_place], self.column_row):
            raise DataError("The order of the rows and the order of the columns must hold the same links. They differ.")

    @property
    def num_rows(self) -> int:
        """Number of rows, those without links included."""
        return self.row_ptr.shape[0] - 1

    @property
    def num_columns(self) -> int:
        """Number of columns, those without links included."""
        return self.column_ptr.shape[0] - 1

    @property
    def num_links(self) -> int:
        """Number of links."""
        return self.row_column.shape[0]

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor, Tensor | None]:
        """The row order's three parts, then the column order's."""
        return self.row_ptr, self.row_column, self.row_link, self.column_ptr, self.column_row, self.column_link

    def transposed(self) -> Links:
        """Rows and columns exchanged; a link keeps its number."""
        return from_parts(*self.parts[3:], *self.parts[:3])

    @_kept
    def row_index(self) -> Int[Tensor, " I"]:
        """Return the row of each link, in row order."""
        return torch.repeat_interleave(self.row_ptr.diff(), output_size=self.num_links)

    @_kept
    def row_place(self) -> Int[Tensor, " I"]:
        """0, 1, 2, ...: where each link of the row order stands in the row order."""
        return _numbers(None, self.num_links, self.row_column)

    @_kept
    def column_place(self) -> Int[Tensor, " I"]:
        """Where each link of the column order stands in the row order."""
        numbers = _numbers(self.column_link, self.num_links, self.row_column)
        if self.row_link is None:
            return numbers
        return torch.empty_like(numbers).scatter_(0, self.row_link, self.row_place)[numbers]


def node_links(hypergraph: Hypergraph) -> Links:
    """Rows are nodes, columns are hyperedges, and a link's number is its place in the stored incidences."""
    return _both(hypergraph)[0]


def edge_links(hypergraph: Hypergraph) -> Links:
    """Rows are hyperedges, columns are nodes: `node_links` transposed."""
    return _both(hypergraph)[1]


@torch.inference_mode(False)
def sparse_links(matrix: Tensor) -> Links:
    r"""Return links for the stored entries of a sparse matrix; ``matrix.values()`` are the weights.

    ``gather_sum(w, sparse_links(x), x.values())`` is the product $x\,w$ with the transpose stored for the gradient.

    Args:
        matrix: A sparse CSR tensor.

    Returns:
        The links, numbered as the values are stored.

    Raises:
        DataError: if the matrix is not a sparse CSR tensor.
    """
    if matrix.layout != torch.sparse_csr or matrix.dim() != 2:
        raise DataError(f"'matrix' must be a sparse CSR matrix. Got {matrix.layout}, {matrix.dim()} dimensions.")
    return row_links(matrix.crow_indices().long(), matrix.col_indices().long(), matrix.shape[1])


@torch.inference_mode(False)
def row_links(row_ptr: Int[Tensor, " R_plus_1"], column: Int[Tensor, " I"], num_columns: int) -> Links:
    """Links from the columns of each row, numbered in the order of the rows."""
    order = torch.sort(column, stable=True).indices
    return Links(row_ptr, column, None, group_bounds(column, num_columns), _owners(row_ptr)[order], order)


def _both(hypergraph: Hypergraph) -> tuple[Links, Links]:
    def make() -> tuple[Links, Links]:
        order = hypergraph.node_order
        by_node = hypergraph.node_ptr, hypergraph.edge_index[order], order
        by_edge = hypergraph.edge_ptr, hypergraph.node_index, None
        nodes = from_parts(*by_node, *by_edge)  # the hypergraph has checked and sorted them
        return nodes, nodes.transposed()

    return hypergraph.derive("links", make)


def from_parts(*parts: Tensor | None) -> Links:
    """Links whose six parts are known to be right: nothing is checked."""
    links = object.__new__(Links)
    for name, part in zip(Links.__dataclass_fields__, parts, strict=True):
        object.__setattr__(links, name, part)
    return links


def _owners(ptr: Tensor) -> Tensor:
    return torch.repeat_interleave(ptr.diff())


def _numbers(link: Tensor | None, count: int, beside: Tensor) -> Tensor:
    return link if link is not None else torch.arange(count, device=beside.device)


def _check_vector(name: str, index: Tensor, length: int) -> None:
    if index.dtype != torch.int64 or index.shape != (length,) or not index.is_contiguous():
        given = f"{index.dtype}, shape {list(index.shape)}"
        raise DataError(f"'{name}' must be {length} contiguous numbers of type int64. Got {given}.")


def _check_pointers(name: str, ptr: Tensor, links: int) -> None:
    if ptr.dim() != 1 or len(ptr) == 0:
        raise DataError(f"'{name}' must be a vector of at least one number. Got shape {list(ptr.shape)}.")
    _check_vector(name, ptr, len(ptr))
    if int(ptr[0]) != 0 or int(ptr[-1]) != links or bool((ptr.diff() < 0).any()):
        raise DataError(f"'{name}' must rise from 0 to the number of links, {links}, without falling.")
