"""Hypothesis strategies. They draw plain lists; test bodies build the `Hypergraph` (beartype touches global random)."""

import os

from hypothesis import strategies as st

EVERYDAY = 100


def examples(number: int) -> int:
    """Return how many examples to try: all with HYPOTHESIS_PROFILE=thorough, a hundred at most on other days."""
    return number if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else min(number, EVERYDAY)


@st.composite
def hyperedge_lists(draw, max_nodes: int = 8, max_edges: int = 8):
    """(num_nodes, hyperedges): isolated nodes, empty, singleton and repeated hyperedges, duplicates included."""
    num_nodes = draw(st.integers(0, max_nodes))
    members = st.lists(st.integers(0, max(num_nodes - 1, 0)), max_size=max_nodes + 2 if num_nodes else 0)
    hyperedges = draw(st.lists(members, max_size=max_edges))
    return num_nodes, hyperedges
