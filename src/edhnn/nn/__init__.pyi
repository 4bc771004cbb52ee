from .conv import EDConv as EDConv
from .mlp import MLP as MLP
from .mlp import Dropout as Dropout
from .mlp import LayerNorm as LayerNorm
from .operators import EquivariantOperator as EquivariantOperator
from .operators import InvariantOperator as InvariantOperator
from .update import ConcatUpdate as ConcatUpdate
from .update import RestartUpdate as RestartUpdate
