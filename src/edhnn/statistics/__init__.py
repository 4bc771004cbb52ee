"""What can be counted in a hypergraph: sizes, degrees, components, repetitions, and homophily by its four names."""

from edhnn.statistics.classes import class_indicator as class_indicator
from edhnn.statistics.classes import class_mixing as class_mixing
from edhnn.statistics.classes import members_by_class as members_by_class
from edhnn.statistics.homophily import Homophily as Homophily
from edhnn.statistics.homophily import clique_edge_homophily as clique_edge_homophily
from edhnn.statistics.homophily import clique_homophily as clique_homophily
from edhnn.statistics.homophily import clique_homophily_weighted as clique_homophily_weighted
from edhnn.statistics.homophily import clique_homophily_without_self as clique_homophily_without_self
from edhnn.statistics.homophily import homophilies as homophilies
from edhnn.statistics.structure import component_sizes as component_sizes
from edhnn.statistics.structure import first_equal_hyperedge as first_equal_hyperedge
from edhnn.statistics.summary import Distribution as Distribution
from edhnn.statistics.summary import Statistics as Statistics
from edhnn.statistics.summary import describe as describe
