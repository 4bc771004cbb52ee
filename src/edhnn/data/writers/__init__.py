"""One writer per format; `write_dataset` chooses by name."""
