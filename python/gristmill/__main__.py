"""`python -m gristmill` is the program of this package, also where its directory is not in the PATH."""
import os
import sys

from .errors import GristmillError
from .program import program

try:
    place = program()
except GristmillError as error:
    sys.exit(f"gristmill: {error}")
try:
    os.execvp(place, [place, *sys.argv[1:]])
except OSError as error:
    sys.exit(f"gristmill: {place} cannot be started: {error.strerror}")
