"""From a record of options to a command, and to the names of its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any, get_args, get_type_hints


def option_names(options: type, *, single: bool = False) -> list[str]:
    """Return the options of a command, as they are written; on demand those that take one value, or none."""
    named = get_type_hints(options, include_extras=True)
    found = {one.name: get_args(named[one.name]) for one in fields(options)}
    return [
        name
        for kind, option in found.values()
        if not (single and "list" in str(kind))
        for text in (getattr(option, "default", ""), *(getattr(option, "param_decls", None) or ()))
        if isinstance(text, str)
        for name in text.split("/")[: 1 if not single else None]
        if name.startswith("--") and not (single and "/" in text)
    ]


def taking(options: type, home: str) -> Callable[..., None]:
    """Return a command whose parameters are the fields of a record, which a function receives filled in.

    The function is named by module and name, and imported when the command runs: help must not wait for libraries.
    """
    module, name = home.split(":")

    def run(**given: Any) -> None:
        getattr(import_module(module), name)(options(**given))

    named = get_type_hints(options, include_extras=True)
    known = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
            annotation=named[one.name],
        )
        for one in fields(options)
    ]
    run.__name__, run.__doc__, run.__annotations__ = name, options.__doc__, named
    run.__signature__ = inspect.Signature(known)  # type: ignore[attr-defined]
    return run
