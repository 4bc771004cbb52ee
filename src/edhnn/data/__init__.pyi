from .dataset import NodeDataset as NodeDataset
from .dataset import Provenance as Provenance
from .encoding import Encoding as Encoding
from .ids import Ids as Ids
from .limits import Limits as Limits
from .splits import Split as Split
from .splits import random_splits as random_splits
