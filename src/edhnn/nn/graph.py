r"""A fixed sparse matrix that multiplies states: what graph convolutions propagate with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Float
from torch import Tensor

from edhnn import kernels
from edhnn.kernels import Links
from edhnn.nn.cache import cached_per_tensor


@final
@dataclass(frozen=True, eq=False)
class GraphOperator:
    """A sparse matrix as links and weights, one copy of the weights per type asked for.

    Args:
        links: Where entries are.
        weight: The entries.
    """

    links: Links
    weight: Float[Tensor, " I"]

    @classmethod
    def from_scipy(cls, matrix: sp.csr_array, device: torch.device) -> GraphOperator:
        """Return the matrix on a device."""
        indptr, indices = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
        weight = torch.from_numpy(matrix.data.astype(np.float64))
        return cls(kernels.row_links(indptr.to(device), indices.to(device), matrix.shape[1]), weight.to(device))

    def __call__(self, x: Float[Tensor, "S D"]) -> Float[Tensor, "R D"]:
        """Return the product."""
        weight = cached_per_tensor(self.weight, x.dtype, lambda: self.weight.to(x))
        return kernels.gather_sum(x, self.links, weight)


def normalised_with_loops(adjacency: sp.csr_array) -> sp.csr_array:
    r"""Return $D^{-1/2} (A + I) D^{-1/2}$ with $D$ the row sums of $A + I$; an infinite factor is 0.

    Source: GCN (Kipf and Welling, ICLR 2017). A negative row sum gives NaN, as there.
    """
    looped = sp.csr_array(adjacency + sp.eye_array(adjacency.shape[0], format="csr"))
    degree = np.asarray(looped.sum(axis=1)).ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = degree**-0.5
    scale[np.isinf(scale)] = 0
    scaled = sp.csr_array(sp.diags_array(scale) @ looped @ sp.diags_array(scale))
    scaled.sort_indices()
    return scaled
