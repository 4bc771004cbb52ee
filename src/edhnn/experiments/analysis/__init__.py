"""Analysis of records: grids of scores, statistical tests, and verdicts on the paper's claims."""
