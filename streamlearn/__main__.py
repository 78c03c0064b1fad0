"""`python -m streamlearn` is the command `streamlearn`."""

import sys

from streamlearn.cli import main

if __name__ == "__main__":
    sys.exit(main())
