"""The doctor: what is in a dataset, what is wrong with it, what training on it costs, and how it looks."""
