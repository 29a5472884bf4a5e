"""`python -m mendflow` is the command line."""

import sys

from mendflow.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
