"""`python -m chainframe`: the command."""

import sys

from chainframe.cli import main

if __name__ == "__main__":
    sys.exit(main())
