"""The Hypergraph Interchange Format (HIF)."""
