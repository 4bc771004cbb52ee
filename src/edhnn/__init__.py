"""Hypergraph diffusion, classical and neural. The names below are the whole public interface."""

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
from edhnn.errors import DataError as DataError
from edhnn.errors import DownloadError as DownloadError
from edhnn.errors import EdhnnError as EdhnnError
from edhnn.errors import LimitError as LimitError
from edhnn.errors import MissingDependencyError as MissingDependencyError
from edhnn.errors import UsageError as UsageError
from edhnn.hypergraph import Hypergraph as Hypergraph

__version__ = "0.1.0"
