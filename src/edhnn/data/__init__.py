"""Datasets: the value, its readers and writers, the catalogue, and the doctor."""
