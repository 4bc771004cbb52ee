"""Hypothesis strategies. They draw plain lists, not a `Hypergraph`, because beartype uses the global random state."""

import os

from hypothesis import strategies as st

EVERYDAY = 100


def examples(number: int) -> int:
    """Return the number of examples to try: all with HYPOTHESIS_PROFILE=thorough, otherwise at most a hundred."""
    return number if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else min(number, EVERYDAY)


@st.composite
def hyperedge_lists(draw, max_nodes: int = 8, max_edges: int = 8):
    """Draw (num_nodes, hyperedges) with isolated nodes, empty, singleton and repeated hyperedges, and duplicates."""
    num_nodes = draw(st.integers(0, max_nodes))
    members = st.lists(st.integers(0, max(num_nodes - 1, 0)), max_size=max_nodes + 2 if num_nodes else 0)
    hyperedges = draw(st.lists(members, max_size=max_edges))
    return num_nodes, hyperedges
