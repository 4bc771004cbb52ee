"""A report from records alone: one HTML page, and its tables as Markdown."""
