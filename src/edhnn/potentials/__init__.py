"""Potentials: functions of hyperedges and of nodes, each with its gradient and its proximal operator."""
