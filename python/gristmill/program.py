"""Where the program `gristmill` is, and that it runs."""
from __future__ import annotations

import os
import pathlib
import shutil
import sys
import sysconfig

from .errors import GristmillError

# Names the program to use instead of the one that came with this package.
VARIABLE = "GRISTMILL_PROGRAM"


def program() -> str:
    """The path of the program: the one that is named by the environment, the one of this package, the one in the PATH."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user"), os.path.dirname(sys.executable)]
    for folder in folders:
        place = pathlib.Path(folder) / "gristmill"
        if os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("gristmill")
    if found is None:
        raise GristmillError(f"there is no program `gristmill` in {', '.join(folders)} nor in the PATH: name it by {VARIABLE}")
    return found
