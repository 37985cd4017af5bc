"""`make demo`: an agent is killed at the worst moment and a new process goes on.

Needs only Holdfast and the standard library: no network, no model.
"""

import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from demo.story import main  # noqa: E402 - found through the line above

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
