"""The worked example: a matrix of five models with the graph and the routes that follow from it, checked by hand."""

from pathlib import Path
from typing import Any

import msgspec

WORKED: Any = msgspec.json.decode((Path(__file__).parent / "worked_example.json").read_bytes())
EXPECTED: Any = WORKED["expected"]
