"""What a cell of an experiment can be: each kind resolves settings and performs a job."""
