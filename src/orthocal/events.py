"""Whether a time is that of the event or of the end of follow-up (censored)."""

from __future__ import annotations

from typing import Any

import numpy as np

from orthocal.arrays import Booleans, Floats, Labels
from orthocal.errors import OrthocalError
from orthocal.formats import listed, shown


def separated(y: Any, event: Any) -> tuple[Any, Any]:
    """Return times and events: those given, or the two fields of a structured array as scikit-survival has them."""
    fields = getattr(getattr(y, "dtype", None), "fields", None)
    if not fields:
        return y, event
    if event is not None:
        raise OrthocalError("`event` must be given once; `y` is a structured array that holds it. Leave event= out.")
    flags = [name for name, (kind, *_) in fields.items() if kind.kind == "b"]
    times = [name for name, (kind, *_) in fields.items() if kind.kind in "fiu"]
    if len(flags) != 1 or len(times) != 1:
        raise OrthocalError(
            f"`y` as a structured array must have two fields, whether the event was seen (boolean) and the time (a number); "
            f"it has {listed(fields)}. Pass the times as y and the events as event=."
        )
    return y[times[0]], y[flags[0]]


def as_event(values: Labels, time: Floats) -> Booleans:
    """Return which times are those of an event; the coding is 1 (or True) for an event and 0 (or False) for censored."""
    found = set(np.unique(values).tolist())
    if found == {1, 2}:
        raise OrthocalError(
            "`event` must be 1 for an event and 0 for censored; it is 2 and 1, as R's Surv codes them. Pass event == 2."
        )
    if not found <= {0, 1}:
        other = next(value for value in sorted(found, key=str) if value not in {0, 1})
        raise OrthocalError(
            f"`event` must be 1 for an event and 0 for censored in every row; {shown(other)} occurs. Recode the column: "
            "event == the value that stands for the event."
        )
    if len(time) and time.min() <= 0:
        row = int(np.argmin(time))
        raise OrthocalError(
            f"`y` must hold positive times where `event` is given; row {row} is {time[row]:g}. Count time from treatment, and "
            "drop rows without follow-up or give them half a unit of time."
        )
    return np.asarray(values == 1)


def require_use_of_event(effect: Any, event: Booleans | None) -> None:
    """Events are given to an effect that has a use for them; any other would take the end of follow-up for an outcome."""
    if event is not None and not getattr(effect, "uses_event", False):
        raise OrthocalError(
            f"`event` must go with an effect on censored times; {type(effect).__name__} does not use it. Use "
            "SurvivalProbability(time=...) or RestrictedMeanTime(horizon=...), or leave event out if nothing is censored."
        )
