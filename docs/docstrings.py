"""Docstrings made ready for the reference: formulas as MathML, which browsers draw themselves, and one entry per parameter.

Nothing is fetched, neither when the pages are built nor when they are read.
"""

from __future__ import annotations

import re
from typing import Any

import griffe
from latex2mathml.converter import convert

ROLE = re.compile(r":math:`([^`]+)`")
TOGETHER = re.compile(
    r"^(?P<names>\w+(?:, \w+)+)(?P<kind> : [^\n]*)?\n(?P<text>(?:[ ]+[^\n]*(?:\n|$))*)",
    re.MULTILINE,
)
"""Parameters that share an entry; griffe would give all of them the type and default of the first."""


class Readable(griffe.Extension):
    """Rewrite docstrings before they are parsed."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of each object as it is collected."""
        if obj.docstring:
            text = ROLE.sub(lambda found: drawn(found[1]), obj.docstring.value)
            head, mark, tail = text.partition("Parameters\n----------\n")
            section, *rest = re.split(
                r"(?=^\w+\n-+\n)", tail, maxsplit=1, flags=re.MULTILINE
            )
            obj.docstring.value = "".join(
                [head, mark, TOGETHER.sub(apart, f"{section}\n"), *rest]
            )

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Point public names at functions where griffe takes the module of the same name."""
        for name in pkg.exports or []:
            member = pkg.members[str(name)]
            if member.is_alias and pkg.modules_collection[member.target_path].is_module:
                pkg.set_member(
                    str(name), griffe.Alias(str(name), f"{member.target_path}.{name}")
                )


def drawn(formula: str) -> str:
    """Return one formula as MathML on one line."""
    # Markdown takes a line that begins with <math> for a block; not one that begins with <span>.
    return f"<span>{' '.join(convert(' '.join(formula.split())).split())}</span>"


def apart(found: re.Match[str]) -> str:
    """Return an entry of several parameters as one entry for each."""
    return "".join(
        f"{name}{found['kind'] or ''}\n{found['text']}"
        for name in found["names"].split(", ")
    )
