"""Searching sizes of a model by validation scores."""
