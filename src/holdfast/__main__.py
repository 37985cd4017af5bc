"""`python -m holdfast` is the command line."""

import sys

from holdfast.cli import main

sys.exit(main())
