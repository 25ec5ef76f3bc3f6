"""Numbers, intervals, p-values and other values as text, the same wherever they are printed."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from typing import Any

LARGE, HUGE = 1e4, 1e9
"""Numbers between these are written out."""


def number(value: float | None) -> str:
    """Return a number in four digits, or all the digits before the point; nothing where it is not a number."""
    if value is None:
        return "none"
    if isnan(value):
        return ""
    return f"{value:,.0f}" if LARGE <= abs(value) < HUGE else f"{value:.4g}"


def brief(value: float) -> str:
    """Return a number in three digits, or all the digits before the point."""
    return f"{value:,.0f}" if 1000 <= abs(value) < HUGE else f"{value:.3g}"


def between(ends: tuple[float, float]) -> str:
    """Return an interval in words."""
    return f"{number(ends[0])} to {number(ends[1])}"


def estimate(value: float | None, ends: tuple[float, float] | None) -> str:
    """Return a number with its interval in brackets, if it has one."""
    return number(value) if ends is None else f"{number(value)} ({between(ends)})"


def p_value(value: float | None) -> str:
    """Return a p-value, or that there is none."""
    if value is None:
        return "none"
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.4f}"


def percent(level: float) -> str:
    """Return a confidence level in percent."""
    return f"{100 * level:g}%"


def off_by(excess: float, ends: tuple[float, float], unit: str = "") -> str:
    """Say by how much predictions are too high or too low, in a number that is never negative, with its interval."""
    if excess < 0:
        word, ends = "too low", (-ends[1], -ends[0])
    else:
        word = "too high"
    return f"{word} by {number(abs(excess))}{unit} (interval {between(ends)})"


def whole(count: float) -> str:
    """Return a large count in two digits that matter, a small one as it is."""
    size = max(len(str(int(count))) - 2, 0)
    return f"{round(int(count), -size):,}"


MOST_SHOWN = 60
"""Characters of a value that a sentence shows."""


def shown(value: Any) -> str:
    """Return a value as it stands in a sentence: on one line, and not long."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # a whole number of thousands of digits
        return f"a very long {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 4]} ..."


def first_words(error: BaseException) -> str:
    """Return the first line of what an error of another library says, as a sentence and not long."""
    text = next(iter(str(error).splitlines()), "") or type(error).__name__
    return f"{text[: 2 * MOST_SHOWN].rstrip('.')}."


def listed(names: Iterable[Any], most: int = 2 * MOST_SHOWN) -> str:
    """Return names as they stand in a sentence: comma-separated, and not long."""
    every = [name if name.isprintable() else repr(name) for name in map(str, names)]
    kept: list[str] = []
    for name in every:
        if sum(map(len, kept)) + 2 * len(kept) + len(name) > most:
            break
        kept.append(name)
    if not every or len(kept) == len(every):
        return ", ".join(every)
    kept = kept or [shown(every[0])]
    return ", ".join(kept) + (f" and {len(every) - len(kept)} more" if len(every) > len(kept) else "")
