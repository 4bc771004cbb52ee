r"""Pairs $(H^{(0)}, H^{(1)})$ of one diffusion step, on which a network learns to represent a known diffusion.

An instance has one channel: $\sigma \sim U[1, 10]$, then $h^{(0)}_v \sim \mathcal{N}(0, \sigma^2)$. The node potential
is $f = (h - x)^2$ with $x = H^{(0)}$. One step of a solver gives $H^{(1)}$:

    gradient   $h^{(1)}_v = x_v - \eta \sum_{e \ni v} [\nabla g(H_e)]_v$, as $\nabla f = 0$ at $h = x$
    ADMM       $h^{(1)}_v = \big(\sum_{e \ni v} \mathrm{prox}_{\eta g}(H_e)_v + 2 \eta x_v\big) / (d_v + 2 \eta)$

A folder holds ``x.npy`` and ``y.npy``, float32 of shape [count, N], and ``about.json``. It is written in blocks, so
that any count fits into memory; a failure leaves no partial folder. ``y`` is the step in float64 from the stored ``x``,
rounded. Paper: Appendix F.5.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import numpy as np
import numpy.typing as npt
import torch

from edhnn.data.dataset import NodeDataset
from edhnn.data.fingerprints import content_digests
from edhnn.diffusion.admm import ADMM
from edhnn.diffusion.gradient_descent import GradientDescent
from edhnn.diffusion.problem import DiffusionProblem
from edhnn.diffusion.solver import Solver
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.io.files import atomic_folder, open_existing, refuse_foreign
from edhnn.potentials.base import HyperedgePotential
from edhnn.potentials.clique import CliqueExpansion
from edhnn.potentials.registry import make_potential
from edhnn.typing import JsonObject

GradientPotential = Literal["ce", "tv", "lec"]
AdmmPotential = Literal["tv", "lec"]
Clique = Literal["laplacian", "literal"]
Pairs = npt.NDArray[np.float32]
GRADIENT_STEP_SIZE = {"ce": 0.5, "tv": 0.02, "lec": 0.1}
ADMM_STEP_SIZE = 0.5
VALUES_PER_BLOCK = 2**21
"""The most incidences times instances of a block: 16 MB for each tensor of a step."""
_X, _Y, _ABOUT = "x.npy", "y.npy", "about.json"


def uniform_hypergraph(num_nodes: int = 1000, num_edges: int = 1000, size: int = 20, *, seed: int = 0) -> Hypergraph:
    """Draw hyperedges of one size, each a uniformly random set of nodes. Paper: Appendix F.5 (the ADMM data).

    Args:
        num_nodes: Number of nodes.
        num_edges: Number of hyperedges; two may be equal.
        size: Nodes in each hyperedge.
        seed: Seed of `numpy.random.RandomState`.

    Example:
        >>> uniform_hypergraph(10, 4, 3).edge_size.tolist()
        [3, 3, 3, 3]
    """
    if not 0 <= size <= num_nodes:
        raise UsageError(f"The size of the hyperedges must lie in 0..{num_nodes}, the number of nodes. Got {size}.")
    random = np.random.RandomState(seed)
    members = [random.permutation(num_nodes)[:size].tolist() for _ in range(num_edges)]
    return Hypergraph.from_hyperedges(members, num_nodes=num_nodes)


def gradient_pairs(
    hypergraph: Hypergraph,
    potential: GradientPotential,
    target: Path,
    *,
    count: int = 1000,
    seed: int = 0,
    clique: Clique = "laplacian",
    overwrite: bool = False,
) -> JsonObject:
    r"""Write pairs of one gradient step, $\eta$ = 0.5 (CE), 0.02 (TV), 0.1 (LEC); $p = 2$ for TV and LEC.

    Paper: Appendix F.5, on the Senate hypergraph, 1,000 pairs.
    Differs: the paper states that the variance ratios of the three are alike. That is impossible with CE as printed,
    whose step multiplies the variance by about $10^6$. They are alike with ``laplacian``, the default.

    Args:
        hypergraph: The hypergraph.
        potential: ``ce``, ``tv`` or ``lec``.
        target: The folder to make.
        count: Number of pairs.
        seed: Seed of `numpy.random.RandomState`, from which the instances are drawn in order.
        clique: For ``ce``: ``laplacian``, or ``literal``, as printed, over ordered pairs, which explodes.
        overwrite: Replace an existing folder of pairs.

    Returns:
        The content of ``about.json``.
    """
    if potential not in GRADIENT_STEP_SIZE:
        raise unknown_name("potential", potential, GRADIENT_STEP_SIZE)
    if clique not in get_args(Clique):
        raise unknown_name("clique expansion", clique, get_args(Clique))
    eta = GRADIENT_STEP_SIZE[potential]
    about: JsonObject = {"step": "gradient", "potential": potential, "step_size": eta, "power": 2}
    about["normalisation"] = clique if potential == "ce" else None
    if potential == "ce" and clique == "literal":
        about["warning"] = (
            "The clique expansion as printed (ordered pairs, no normalisation) explodes with this step size: see "
            "variance_ratio. Use clique='laplacian' for outputs on the scale of the inputs."
        )
    if potential == "ce":
        chosen: HyperedgePotential = CliqueExpansion(normalisation="laplacian" if clique == "laplacian" else "none")
    else:
        chosen = make_potential(potential)
    solver = GradientDescent(rule="fixed", step_size=eta)
    return _write(hypergraph, chosen, solver, about, target, count, seed, overwrite)


def admm_pairs(
    hypergraph: Hypergraph,
    potential: AdmmPotential,
    target: Path,
    *,
    count: int = 1000,
    seed: int = 0,
    overwrite: bool = False,
) -> JsonObject:
    r"""Write pairs of one ADMM step, $\eta = 1/2$, $p = 2$. Paper: Appendix F.5, on `uniform_hypergraph`, 1,000 pairs.

    Args:
        hypergraph: The hypergraph.
        potential: ``tv`` or ``lec``.
        target: The folder to make.
        count: Number of pairs.
        seed: Seed of `numpy.random.RandomState`, from which the instances are drawn in order.
        overwrite: Replace an existing folder of pairs.

    Returns:
        The content of ``about.json``.
    """
    if potential not in get_args(AdmmPotential):
        raise unknown_name("potential", potential, get_args(AdmmPotential))
    about: JsonObject = {"step": "admm", "potential": potential, "step_size": ADMM_STEP_SIZE, "power": 2}
    about["normalisation"] = None
    solver = ADMM(step_size=ADMM_STEP_SIZE)
    return _write(hypergraph, make_potential(potential), solver, about, target, count, seed, overwrite)


def read_pairs(folder: Path) -> tuple[Pairs, Pairs, JsonObject]:
    """Map pairs into memory, read-only.

    Args:
        folder: A folder written by `gradient_pairs` or `admm_pairs`.

    Returns:
        Inputs and outputs, [count, N] each, and the content of ``about.json``.

    Raises:
        UsageError: if a file is missing.
        DataError: if a file is invalid or the arrays do not have the shape in ``about.json``.
    """
    with open_existing(folder / _ABOUT) as stream:
        try:
            about = msgspec.json.decode(stream.read(), type=JsonObject)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(f"The file must be a JSON object. Cause: {error}.", path=folder / _ABOUT) from error
    x, y = (_mapped(folder / name, (about.get("count"), about.get("num_nodes"))) for name in (_X, _Y))
    return x, y, about


def _mapped(path: Path, shape: tuple[object, object]) -> Pairs:
    open_existing(path).close()  # raises the usual error for a missing file
    try:
        pairs = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError, OverflowError) as error:
        raise DataError(f"The file must be a complete npy array. Cause: {error}.", path=path) from error
    if pairs.shape != shape or pairs.dtype != np.float32:
        raise DataError(
            f"The array must be float32 of shape {list(shape)}, according to {_ABOUT}. "
            f"Got {pairs.dtype} of shape {list(pairs.shape)}.",
            path=path,
        )
    return pairs


def _write(
    hypergraph: Hypergraph,
    potential: HyperedgePotential,
    solver: Solver[Any],
    about: JsonObject,
    target: Path,
    count: int,
    seed: int,
    overwrite: bool,
) -> JsonObject:
    nodes = hypergraph.num_nodes
    if count < 1 or nodes < 1:
        raise UsageError(f"There must be at least one pair and one node. Got {count} pairs and {nodes} nodes.")
    if overwrite:
        refuse_foreign(target, _ABOUT, "pairs")
    random = np.random.RandomState(seed)
    rows = max(1, VALUES_PER_BLOCK // max(hypergraph.num_incidences, nodes))
    sums = np.zeros((2, 2))  # rows: x and y; columns: sums of values and of squares
    with atomic_folder(target, overwrite=overwrite) as folder:
        x_file, y_file = (
            np.lib.format.open_memmap(folder / name, mode="w+", dtype="<f4", shape=(count, nodes)) for name in (_X, _Y)
        )
        for start in range(0, count, rows):
            instances = [random.normal(0, random.uniform(1, 10), nodes) for _ in range(min(rows, count - start))]
            x = np.stack(instances).astype(np.float32)
            problem = DiffusionProblem(
                hypergraph=hypergraph, x=torch.from_numpy(x.T.astype(np.float64)), hyperedge_potential=potential
            )
            y = solver.step(problem, solver.init(problem)).h.numpy().T
            x_file[start : start + rows], y_file[start : start + rows] = x, y
            sums += [[part.sum(dtype=float), np.square(part, dtype=float).sum()] for part in (x, y)]
        x_file.flush()
        y_file.flush()
        variance = sums[:, 1] / (count * nodes) - (sums[:, 0] / (count * nodes)) ** 2
        about |= {
            "count": count,
            "num_nodes": nodes,
            "num_edges": hypergraph.num_edges,
            "num_incidences": hypergraph.num_incidences,
            "has_edge_weights": hypergraph.edge_weight is not None,
            "seed": seed,
            "hyperedges_sha256": content_digests(NodeDataset(name="pairs", hypergraph=hypergraph))["hyperedges"],
            "variance_ratio": float(variance[1] / variance[0]),
        }
        (folder / _ABOUT).write_bytes(msgspec.json.format(msgspec.json.encode(about), indent=1))
    return about
