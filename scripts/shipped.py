"""Where the program is that scripts measure: the one that was named, or one that is built as it is shipped."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def shipped(named: str | None) -> str:
    """Absolute path of the program `named`; without a name it is built first, which may take minutes."""
    if named is not None:
        return os.path.abspath(named)
    subprocess.run(["cargo", "build", "--quiet", "--profile", "dist", "-p", "gristmill"], cwd=ROOT, check=True)
    return str(ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "dist" / "gristmill")
