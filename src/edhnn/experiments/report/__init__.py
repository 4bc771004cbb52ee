"""A report made from records: an HTML page, figures, and the tables as Markdown."""
