"""Bridges to other libraries, both ways; each library is imported when its bridge is crossed.

What a library cannot hold is refused with a remedy, or kept in a place its module names. See ADR 0002.
"""

from edhnn.data.interop.frames import from_frame as from_frame
from edhnn.data.interop.hypernetx import from_hypernetx as from_hypernetx
from edhnn.data.interop.hypernetx import to_hypernetx as to_hypernetx
from edhnn.data.interop.networkx import from_networkx as from_networkx
from edhnn.data.interop.networkx import to_networkx as to_networkx
from edhnn.data.interop.pyg import from_pyg as from_pyg
from edhnn.data.interop.pyg import to_pyg as to_pyg
from edhnn.data.interop.to_frames import HypergraphFrames as HypergraphFrames
from edhnn.data.interop.to_frames import to_pandas as to_pandas
from edhnn.data.interop.to_frames import to_polars as to_polars
from edhnn.data.interop.xgi import from_xgi as from_xgi
from edhnn.data.interop.xgi import to_xgi as to_xgi
