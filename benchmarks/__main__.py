"""`python -m benchmarks`: the whole table, or one of the programs in PROGRAMS."""

import sys
from importlib import import_module

PROGRAMS = {
    "contest": "benchmarks.contest.main",
    "page": "benchmarks.page",
    "turns": "benchmarks.turns",
    "volume": "benchmarks.volume",
}

if __name__ == "__main__":
    name = sys.argv[1] if sys.argv[1:2] and sys.argv[1] in PROGRAMS else ""
    module = import_module(PROGRAMS.get(name, "benchmarks.main"))
    sys.exit(module.main(sys.argv[2:] if name else sys.argv[1:]))
