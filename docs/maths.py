"""Formulas of docstrings as MathML, which browsers draw themselves: no script, nothing from the network."""

from __future__ import annotations

import re
from typing import Any

import griffe
from latex2mathml.converter import convert

ROLE = re.compile(r":math:`([^`]+)`")


class Formulas(griffe.Extension):
    """Replace every ``:math:`` of a docstring before it is parsed."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of each object as it is collected."""
        if obj.docstring:
            obj.docstring.value = ROLE.sub(lambda found: drawn(found[1]), obj.docstring.value)


def drawn(formula: str) -> str:
    """Return one formula as MathML on one line."""
    return " ".join(convert(" ".join(formula.split())).split())
