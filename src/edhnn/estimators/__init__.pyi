from .label_spreading import HypergraphLabelSpreading as HypergraphLabelSpreading
from .networks import EDHNNClassifier as EDHNNClassifier
from .networks import EDHNNRegressor as EDHNNRegressor
from .samples import NodeSamples as NodeSamples
