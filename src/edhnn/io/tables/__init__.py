"""Tables of memberships, nodes and hyperedges: CSV, TSV and Parquet."""
