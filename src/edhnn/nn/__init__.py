"""Learned operators: the parts that networks on hypergraphs are made of."""
