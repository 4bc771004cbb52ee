"""Records turned into tables, tests, findings and verdicts on the paper's claims."""
