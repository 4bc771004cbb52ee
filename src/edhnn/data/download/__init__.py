"""Published datasets fetched, checked by content and converted; the only part that touches the network."""
