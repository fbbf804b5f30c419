"""Path of the program `gristmill`, and calls of it."""
from __future__ import annotations

import os
import pathlib
import shutil
import sys
import sysconfig

from .errors import GristmillError

# Variable with the program to use instead of the one of this package.
VARIABLE = "GRISTMILL_PROGRAM"


def program() -> str:
    """Returns the path of the program: from the environment variable, else of this package, else from the PATH."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    directories = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user"), os.path.dirname(sys.executable)]
    for directory in directories:
        place = pathlib.Path(directory) / "gristmill"
        if os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("gristmill")
    if found is None:
        raise GristmillError(f"there is no program `gristmill` in {', '.join(directories)} nor in the PATH: name it by {VARIABLE}")
    return found
