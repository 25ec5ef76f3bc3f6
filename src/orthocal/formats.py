"""Numbers, intervals and p-values as text, the same wherever they are printed."""

from __future__ import annotations

from math import isnan

LARGE, HUGE = 1e4, 1e9
"""Numbers between these are written out."""


def number(value: float | None) -> str:
    """Return a number in four digits, or all the digits before the point; nothing where it is not a number."""
    if value is None:
        return "none"
    if isnan(value):
        return ""
    return f"{value:,.0f}" if LARGE <= abs(value) < HUGE else f"{value:.4g}"


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
