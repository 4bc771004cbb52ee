"""Hypergraph diffusion, classical and neural. The names below are the whole public interface."""

from edhnn.data.dataset import NodeDataset as NodeDataset
from edhnn.data.dataset import Provenance as Provenance
from edhnn.data.ids import Ids as Ids
from edhnn.errors import DataError as DataError
from edhnn.errors import DownloadError as DownloadError
from edhnn.errors import EdhnnError as EdhnnError
from edhnn.errors import LimitError as LimitError
from edhnn.errors import MissingDependencyError as MissingDependencyError
from edhnn.errors import UsageError as UsageError
from edhnn.hypergraph import Hypergraph as Hypergraph

__version__ = "0.1.0"
