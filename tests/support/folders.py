"""Where the repository keeps what tests read."""

from pathlib import Path

TESTS = Path(__file__).parent.parent
FIXTURES = TESTS / "fixtures"
PROGRAMS = TESTS / "programs"
ROOT = TESTS.parent
DOCS = ROOT / "docs"
