"""Hypergraph diffusion, classical and neural. The names below are the whole public interface."""

import os as _os
import typing as _typing

_os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # PyTorch reads it before its first tensor: see docs/adr/0009
_os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")  # MKL reads it before its first product: see docs/adr/0011
if "OMP_WAIT_POLICY" not in _os.environ:
    _os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # OpenMP reads it when PyTorch is loaded: see docs/adr/0013

from edhnn.data.catalog import catalog as catalog
from edhnn.data.catalog import default_splits as default_splits
from edhnn.data.catalog import load_dataset as load_dataset
from edhnn.data.catalog import with_label_features as with_label_features
from edhnn.data.dataset import NodeDataset as NodeDataset
from edhnn.data.dataset import Provenance as Provenance
from edhnn.data.files import Limits as Limits
from edhnn.data.hif import HifDocument as HifDocument
from edhnn.data.hif_dataset import dataset_from_document as dataset_from_document
from edhnn.data.hif_dataset import document_from_dataset as document_from_dataset
from edhnn.data.ids import Ids as Ids
from edhnn.data.readers import read_dataset as read_dataset
from edhnn.data.readers.hif import read_hif as read_hif
from edhnn.data.readers.tables import TableRequest as TableRequest
from edhnn.data.splits import Split as Split
from edhnn.data.splits import random_splits as random_splits
from edhnn.data.synthetic import contextual_sbm as contextual_sbm
from edhnn.data.synthetic import label_features as label_features
from edhnn.data.writers import write_dataset as write_dataset
from edhnn.data.writers.hif import write_hif as write_hif
from edhnn.diffusion.admm import ADMM as ADMM
from edhnn.diffusion.conjugate_gradient import ConjugateGradient as ConjugateGradient
from edhnn.diffusion.diffuse import diffuse as diffuse
from edhnn.diffusion.diffuse import pagerank_problem as pagerank_problem
from edhnn.diffusion.gradient_descent import GradientDescent as GradientDescent
from edhnn.diffusion.problem import DiffusionProblem as DiffusionProblem
from edhnn.diffusion.solution import Outcome as Outcome
from edhnn.diffusion.solution import Solution as Solution
from edhnn.diffusion.solution import SolverError as SolverError
from edhnn.diffusion.solve import solve as solve
from edhnn.diffusion.sweep import SweepCut as SweepCut
from edhnn.diffusion.sweep import sweep_cut as sweep_cut
from edhnn.errors import DataError as DataError
from edhnn.errors import DownloadError as DownloadError
from edhnn.errors import EdhnnError as EdhnnError
from edhnn.errors import LimitError as LimitError
from edhnn.errors import MachineError as MachineError
from edhnn.errors import MissingDependencyError as MissingDependencyError
from edhnn.errors import UsageError as UsageError
from edhnn.hypergraph import Hypergraph as Hypergraph
from edhnn.models.edhnn import EDHNN as EDHNN
from edhnn.models.edhnn import EDHNNConfig as EDHNNConfig
from edhnn.models.edhnn_ii import EDHNNII as EDHNNII
from edhnn.models.edhnn_ii import EDHNNIIConfig as EDHNNIIConfig
from edhnn.models.registry import make_model as make_model
from edhnn.nn.equivariant import EquivariantOperator as EquivariantOperator
from edhnn.nn.equivariant import InvariantOperator as InvariantOperator
from edhnn.nn.mlp import MLP as MLP
from edhnn.potentials.clique import CliqueExpansion as CliqueExpansion
from edhnn.potentials.divergence import DivergenceToMean as DivergenceToMean
from edhnn.potentials.lovasz import LovaszCardinality as LovaszCardinality
from edhnn.potentials.node import FixedLabels as FixedLabels
from edhnn.potentials.node import Logistic as Logistic
from edhnn.potentials.node import SquaredDistance as SquaredDistance
from edhnn.potentials.total_variation import TotalVariation as TotalVariation
from edhnn.training.config import TrainConfig as TrainConfig
from edhnn.training.fit import FitResult as FitResult
from edhnn.training.fit import fit as fit
from edhnn.training.plan import Plan as Plan
from edhnn.training.pretrained import Pretrained as Pretrained
from edhnn.training.pretrained import from_pretrained as from_pretrained
from edhnn.training.run import train as train
from edhnn.training.summary import RunSummary as RunSummary
from edhnn.transforms import add_singletons as add_singletons

if _typing.TYPE_CHECKING:
    from edhnn.estimators.label_spreading import HypergraphLabelSpreading as HypergraphLabelSpreading
    from edhnn.estimators.networks import EDHNNClassifier as EDHNNClassifier
    from edhnn.estimators.networks import EDHNNRegressor as EDHNNRegressor
    from edhnn.estimators.samples import NodeSamples as NodeSamples

__version__ = "0.1.0"

_LAZY = {
    "HypergraphLabelSpreading": "edhnn.estimators.label_spreading",
    "EDHNNClassifier": "edhnn.estimators.networks",
    "EDHNNRegressor": "edhnn.estimators.networks",
    "NodeSamples": "edhnn.estimators.samples",
}
"""Public names whose modules load at first use: they need scikit-learn, which is slow to import."""


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'edhnn' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
