from .dataset import NodeDataset as NodeDataset
from .dataset import Provenance as Provenance
from .ids import Ids as Ids
from .limits import Limits as Limits
from .splits import Split as Split
from .splits import given_split as given_split
from .splits import random_splits as random_splits
from .splits import stratified_folds as stratified_folds
