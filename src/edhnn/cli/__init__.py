"""The `edhnn` command: parse options, call the library, print results."""
