"""One reader per format; `read_dataset` chooses by name."""
