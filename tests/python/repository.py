"""Places in the checkout, for tests in any folder."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "python"
