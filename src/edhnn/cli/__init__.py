"""The `edhnn` command: parse, call, print."""
