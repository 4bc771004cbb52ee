"""Diffusion: the problem, the solvers, and certificates of how close they came."""
