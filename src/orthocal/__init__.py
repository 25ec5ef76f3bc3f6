"""orthocal: can this model of causal effects be believed, and if not, can it be fixed?"""

from __future__ import annotations

import ast
import pkgutil
from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def _homes() -> dict[str, str]:
    """Return the module of each public name, from the table that type checkers read; nothing is imported before it is used."""
    table = ast.parse(pkgutil.get_data(__name__, "__init__.pyi") or b"")
    return {
        name.name: node.module
        for node in table.body
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
    }


_HOMES = _homes()
__all__ = sorted(name for name, home in _HOMES.items() if home != __name__)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'orthocal' has no attribute {name!r}")
    home = _HOMES[name]
    return import_module(f"{home}.{name}") if home == __name__ else getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
