"""Networks by name: the ED-HNN family and what it is compared with."""
