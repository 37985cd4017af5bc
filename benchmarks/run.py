"""The entry of `make bench`: ``python benchmarks/run.py --help``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # A script's own folder is on the path, a package's parent is not.
    root = Path(__file__).resolve().parent.parent
    sys.path[0] = str(root)
    # The private servers of the tests are measured on too.
    sys.path.append(str(root / "tests"))
    from benchmarks.main import main

    sys.exit(main())
