"""Packs all that workers need to run functions into one file that Python can run: functions, their modules, this package.

A function reaches a worker in one of two ways:

- With [cloudpickle](https://github.com/cloudpipe/cloudpickle) installed, functions of a notebook or of the main script are
  sent by value, including closures and lambdas; cloudpickle itself is sent along. It requires the same version of Python.
- Without it they are sent by name, with the files of their modules. That includes the script, which workers import without
  running the code below `if __name__ == "__main__"`, as `multiprocessing` does.

Pickle alone is not enough: it sends a name, and workers have no module of that name. Sources alone are not enough either:
in notebooks there are none.

Modules that functions use outside the standard library and site-packages are sent too. Installed packages must be installed
on workers.
"""
from __future__ import annotations

import ast
import importlib
import importlib.util
import io
import json
import linecache
import pathlib
import pickle
import sys
import sysconfig
import zipfile
from collections import ChainMap
from types import CodeType, ModuleType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from .errors import ShippingError

# Maximum bytes of all sources together.
BYTES_MAX = 16 << 20
# Name of the script on workers.
SCRIPT = "__gristmill_script__"
# All entries of the archive have this time, so that the same job gives the same file.
MOMENT = (1980, 1, 1, 0, 0, 0)
_INSTALLED = ("site-packages", "dist-packages")


def _cloudpickle() -> Optional[ModuleType]:
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        return None


def _path(module: ModuleType) -> Optional[pathlib.Path]:
    name = getattr(module, "__file__", None)
    path = pathlib.Path(name) if name else None
    return path if path and path.suffix == ".py" and path.is_file() else None


def _is_users(module: ModuleType) -> bool:
    """True if workers may lack a module."""
    path = _path(module)
    if path is None or module.__name__.split(".")[0] == __package__:
        return False
    standard = [pathlib.Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    return not any(part in _INSTALLED for part in path.parts) and not any(base in path.parents for base in standard)


def _named_by(function: Callable[..., Any]) -> Iterator[ModuleType]:
    """Returns the modules that a function comes from or names."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    if module is not None:
        yield module
    code = getattr(function, "__code__", None)
    names = code.co_names if code else ()
    values = [getattr(function, "__globals__", {}).get(name) for name in names]
    values += [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if _is_filled(cell)]
    yield from _modules_of(values)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _modules_of(values: Iterable[Any]) -> Iterator[ModuleType]:
    for value in values:
        if isinstance(value, ModuleType):
            yield value
        else:
            name = getattr(value, "__module__", None)
            found = sys.modules.get(name) if isinstance(name, str) else None
            if found is not None:
                yield found


def _imported_by(module: ModuleType) -> Iterator[ModuleType]:
    """Returns the loaded modules that the source of a module imports, even if only for a constant."""
    path = _path(module)
    if path is None:
        return
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    names: List[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            try:
                base = importlib.util.resolve_name("." * node.level + (node.module or ""), module.__package__ or "")
            except ImportError:
                continue
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    for name in names:
        found = sys.modules.get(name)
        if found is not None:
            yield found


def users_modules(functions: Iterable[Callable[..., Any]], more: Iterable[ModuleType]) -> Dict[str, ModuleType]:
    """Returns the user's own modules that functions need, by name, without the main script."""
    waiting = [*more]
    for function in functions:
        waiting += _named_by(function)
    found: Dict[str, ModuleType] = {}
    seen = set()
    while waiting:
        module = waiting.pop()
        if id(module) in seen or not _is_users(module):
            continue
        seen.add(id(module))
        if module.__name__ != "__main__":
            top = module.__name__.split(".")[0]
            found[top] = sys.modules.get(top, module)
            waiting += _modules_of(list(vars(module).values()))
            waiting += _imported_by(module)
    return found


def _sources(module: ModuleType) -> Iterator[Tuple[str, bytes]]:
    """Returns the files of a module or a package, by their path in the archive."""
    path = _path(module)
    if path is None:
        return
    if path.name != "__init__.py":
        yield path.name, path.read_bytes()
        return
    for file in sorted(path.parent.rglob("*.py")):
        yield f"{path.parent.name}/{file.relative_to(path.parent)}", file.read_bytes()


def _by_value(cloudpickle: Any, functions: Dict[str, Callable[..., Any]]) -> Tuple[bytes, Set[str]]:
    """Returns functions as bytes, and the names of their files."""
    files: Set[str] = set()
    reduce_code: Any = getattr(cloudpickle.cloudpickle, "_code_reduce", None)

    def reduced(code: CodeType) -> Any:
        # cloudpickle gives all code the same file name, with which tracebacks would show no lines.
        files.add(code.co_filename)
        make, arguments = reduce_code(code)
        return make, tuple(code.co_filename if argument == "<dynamic-code>" else argument for argument in arguments)

    packed = io.BytesIO()
    # The table is read when a pickler is created, so it belongs to the class.
    table = {"dispatch_table": ChainMap({CodeType: reduced}, cloudpickle.Pickler.dispatch_table)} if reduce_code else {}
    type("Pickler", (cloudpickle.Pickler,), table)(packed, pickle.DEFAULT_PROTOCOL).dump(functions)
    return packed.getvalue(), files


def _by_name(role: str, function: Callable[..., Any]) -> Tuple[str, str]:
    """Returns the module and the name by which a worker finds a function."""
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__qualname__", "")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not name or found is not function:
        raise ShippingError(
            f"the {role} {function!r} has no name in a module by which workers could find it: write it as a function of a module, or "
            "install cloudpickle (pip install gristmill[notebook])"
        )
    if module != "__main__":
        return module, name
    if _path(sys.modules["__main__"]) is None:
        raise ShippingError(
            f"the {role} `{name}` was made in a notebook or typed in, so there is no file to send: install cloudpickle "
            "(pip install gristmill[notebook])"
        )
    # Objects of the script's classes come back under this name.
    sys.modules[SCRIPT] = sys.modules["__main__"]
    return SCRIPT, name


def archive(functions: Dict[str, Callable[..., Any]], settings: Dict[str, Any], modules: Iterable[ModuleType] = ()) -> bytes:
    """Returns the file that a worker runs as `python FILE ROLE`."""
    entries: List[Tuple[str, bytes]] = []
    cloudpickle = _cloudpickle()
    description: Dict[str, Any] = {**settings, "python": list(sys.version_info[:2])}
    if cloudpickle:
        try:
            pickled, files = _by_value(cloudpickle, functions)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise ShippingError(f"the functions cannot be sent: {error}") from error
        # For tracebacks: workers have no such files.
        lines = {file: "".join(linecache.getlines(file)) for file in sorted(files)}
        entries += [("functions.pickle", pickled), ("lines.json", json.dumps(lines).encode()), *_sources(cloudpickle)]
    else:
        description["functions"] = {role: _by_name(role, function) for role, function in functions.items()}
        main = _path(sys.modules["__main__"])
        if any(module == SCRIPT for module, _ in description["functions"].values()) and main:
            entries.append((f"{SCRIPT}.py", main.read_bytes()))
    needed = users_modules(functions.values(), modules)
    if not cloudpickle and "__main__" in sys.modules:
        script = sys.modules["__main__"]
        needed.update(users_modules((), [*_modules_of(vars(script).values()), *_imported_by(script)]))
    for module in needed.values():
        entries += _sources(module)
    entries += _sources(sys.modules[__package__])
    entries.append(("__main__.py", b"from gristmill.worker import main\nmain()\n"))
    entries.append(("job.json", json.dumps(description, sort_keys=True).encode()))
    total = sum(len(content) for _, content in entries)
    if total > BYTES_MAX:
        largest = max(entries, key=lambda entry: len(entry[1]))
        raise ShippingError(
            f"what would be sent has {total} bytes, and {BYTES_MAX} are allowed; the largest is {largest[0]} with {len(largest[1])}"
        )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in sorted(dict(entries).items()):
            file.writestr(zipfile.ZipInfo(name, MOMENT), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()
