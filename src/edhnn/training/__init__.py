"""Training: a dataset, a model and a split in; a selected model, its numbers and its predictions out."""
