"""`python -m edhnn`: the command, for systems whose path does not contain it."""

from edhnn.cli.main import main

if __name__ == "__main__":
    main()
