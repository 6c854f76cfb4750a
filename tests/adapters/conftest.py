"""Puts this folder on the path: pytest's import mode leaves it out, and the launched programs live here."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
