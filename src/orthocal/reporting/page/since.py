"""What has changed since an earlier verdict, which is read from its `assessment.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from orthocal.errors import OrthocalError
from orthocal.formats import estimate, first_words, number, shown
from orthocal.reporting.page.document import Block, Marked, Page, Section, Table, Text
from orthocal.reporting.page.tables import file_of
from orthocal.reporting.page.top import TONES

Record: TypeAlias = Mapping[str, Any]
WithInterval: TypeAlias = "tuple[float | None, tuple[float, float] | None]"
"""A number and its interval, as far as there are any."""


def with_changes(page: Page, since: str | Path | Record, found: Any) -> Page:
    """Return the page with a first section on what has changed since an earlier verdict."""
    blocks = _blocks(earlier_record(since), _record_of(found))
    return replace(page, sections=(Section("Since last time", blocks), *page.sections))


def _blocks(then: Record, now: Record) -> tuple[Block, ...]:
    return (*_introduction(then), *_marks(then, now), *_tables(then, now))


def earlier_record(since: str | Path | Record) -> Record:
    """Return an earlier verdict, read from a file where it is one; what holds none that can be read is refused."""
    if not isinstance(since, str | Path | Mapping):
        raise OrthocalError(f"`since` must be the path of an earlier assessment.json; it is {shown(since)}.")
    record = since if isinstance(since, Mapping) else _read(Path(since))
    try:
        has_verdict = isinstance(record, Mapping) and any(verdicts_in(record))
        _ = _blocks(record, record) if has_verdict else ()  # what can be compared with itself can be with others
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise OrthocalError(
            f"`since` must hold verdicts as orthocal wrote them; {_name(since)} does not: {first_words(error)}"
        ) from None
    if not has_verdict:
        raise OrthocalError(
            f"`since` must be an assessment.json that `calibrate` or `assess` wrote, or what `to_dict` returned; "
            f"{_name(since)} holds no verdict."
        )
    return record


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise OrthocalError(
            f"`since` must be a file that can be read; {_name(path)} is missing or cannot be opened."
        ) from None
    except (RecursionError, ValueError):
        raise OrthocalError(f"`since` must be JSON, an earlier assessment.json; {_name(path)} is not.") from None


def _name(since: str | Path | Record) -> str:
    return "this record" if isinstance(since, Mapping) else shown(str(since))[1:-1]


def _record_of(found: Any) -> Record:
    """Return what is judged now as the record that its own file has."""
    record: Record = (
        {name: one.to_dict() for name, one in found.items()} if isinstance(found, Mapping) else found.to_dict()
    )
    return record


def verdicts_in(record: Record, name: str = "") -> Iterator[tuple[str, Record]]:
    """Yield the verdicts of a record by name: one, before and after, of several arms, or of several predictions."""
    if "error" in record and "tolerance" in record:
        yield name or "prediction", record
        return
    inside = record.get("contrasts", record)
    when = {key: inside[key] for key in ("before", "after") if key in inside} or inside
    for key, value in when.items():
        if isinstance(value, Mapping) and (key != "sensitivity" or "error" in value):
            yield from verdicts_in(value, f"{name}, {key}" if name else str(key))


def _introduction(then: Record) -> Iterator[Block]:
    """Say which earlier verdict it is."""
    about = then.get("map", {})
    date = f" of {about['date']}" if isinstance(about, Mapping) and "date" in about else ""
    version = f", by orthocal {then['orthocal']}" if isinstance(then.get("orthocal"), str) else ""
    yield Text(f"Then: an earlier verdict{date}{version}. Now: this page.")


def _marks(then: Record, now: Record) -> Iterator[Block]:
    """What was recommended then and now, and checks whose result is another."""
    actions = [_action(record) for record in (then, now)]
    marks = []
    if all(actions):
        words = f"{actions[1]}, as then." if actions[0] == actions[1] else f"then {actions[0]}, now {actions[1]}."
        marks.append((TONES.get(actions[1], "open"), "Recommendation:", words))
    old, new = (_checks(record) for record in (then, now))
    for name, result in new.items():
        if old.get(name, result) != result:
            marks.append((TONES.get(result, "open"), f"Check {name}:", f"then {old[name]}, now {result}."))
    if marks:
        yield Marked(tuple(marks))


def _action(record: Record) -> str:
    found = record.get("recommendation")
    return str(found.get("action", "")) if isinstance(found, Mapping) else ""


def _checks(record: Record) -> dict[str, str]:
    """Return the worst result of each check by its name."""
    order = ("passed", "warning", "failed")
    found: dict[str, str] = {}
    for check in record.get("checks", ()):
        name, result = str(check["name"]), str(check["result"])
        found[name] = max(found.get(name, "passed"), result, key=lambda one: order.index(one) if one in order else -1)
    return found


def _tables(then: Record, now: Record) -> Iterator[Block]:
    """Old and new figures of every verdict that is in both."""
    old, new = dict(verdicts_in(then)), dict(verdicts_in(now))
    if len(old) == len(new) == 1:  # one prediction is compared with one, whatever they are called
        old = dict(zip(new, old.values(), strict=True))
    shared = [name for name in new if name in old]
    if not shared:
        yield Text(f"No verdict of now has the name of one of then ({', '.join(old)}): there is nothing to compare.")
    if shared:
        yield Marked(tuple(_in_words(name, old[name], new[name]) for name in shared))
    for name in shared:
        yield from _differences(old[name], new[name])
        rows = tuple(_rows(old[name], new[name]))
        caption = f"Then and now: {name}"
        yield Table(caption, ("", "then", "now", "what has changed"), rows, words=1, file=file_of("since", name))


def _in_words(name: str, then: Record, now: Record) -> tuple[str, str, str]:
    """Return a mark and a sentence on status and error."""
    statuses = str(then.get("status")), str(now.get("status"))
    moved = f"{statuses[1]}, as then" if statuses[0] == statuses[1] else f"{statuses[0]} then, {statuses[1]} now"
    error = _change(FIGURES["calibration error"](then), FIGURES["calibration error"](now))
    return TONES.get(statuses[1], "open"), f"{name[0].upper()}{name[1:]}:", f"{moved}. The error is {error}."


def _differences(then: Record, now: Record) -> Iterator[Block]:
    """Say where verdicts are on different things."""
    pairs = {"unit": (then.get("unit"), now.get("unit")), "effect": (_effect(then), _effect(now))}
    for name, (old, new) in pairs.items():
        if old != new:
            yield Marked((("bad", "Not comparable:", f"the {name} was {old} and is {new}."),))


def _effect(verdict: Record) -> Any:
    return (verdict.get("origin") or {}).get("effect")


def _rows(then: Record, now: Record) -> Iterator[tuple[str, str, str, str]]:
    status = (str(then.get("status")), str(now.get("status")))
    yield ("status", *status, "the same" if status[0] == status[1] else f"no longer {status[0]}")
    for name, get in FIGURES.items():
        old, new = get(then), get(now)
        if new[0] is not None or old[0] is not None:
            yield (name, _shown(old), _shown(new), _change(old, new))


def _shown(one: WithInterval) -> str:
    return "" if one[0] is None else estimate(*one)


def _change(old: WithInterval, new: WithInterval) -> str:
    """Say in words by how much a figure has moved, and whether the intervals of then and now overlap."""
    if old[0] is None or new[0] is None:
        return "only now" if old[0] is None else "only then"
    change = new[0] - old[0]
    if abs(change) <= SAME * max(abs(new[0]), abs(old[0])):
        return "the same"
    words = f"{'up' if change > 0 else 'down'} by {number(abs(change))}"
    if old[1] is None or new[1] is None:
        return words
    overlap = old[1][0] <= new[1][1] and new[1][0] <= old[1][1]
    return f"{words}; the intervals {'overlap' if overlap else 'do not overlap'}"


SAME = 1e-9
"""Relative difference below which figures are the same."""


def _at(*path: str) -> Callable[[Record], WithInterval]:
    """Return how to find a number, and the interval beside it, in a verdict."""

    def get(verdict: Record) -> WithInterval:
        inside: Any = verdict
        for key in path[:-1]:
            inside = (inside or {}).get(key)
        if not isinstance(inside, Mapping) or inside.get(path[-1]) is None:
            return None, None
        ends = inside.get("interval") if path[-1] in HAVE_INTERVALS else None
        return float(inside[path[-1]]), None if ends is None else (float(ends[0]), float(ends[1]))

    return get


HAVE_INTERVALS = ("error", "effect", "value")
FIGURES: dict[str, Callable[[Record], WithInterval]] = {
    "calibration error": _at("error"),
    "tolerance": _at("tolerance"),
    "rows judged": _at("rows"),
    "average effect": _at("average", "effect"),
    "mean prediction": _at("average", "prediction"),
    "slope": _at("linear_predictor", "slope", "value"),
    "ranking, AUTOC": _at("rate", "autoc", "value"),
    "cost": _at("value", "cost"),
    "value at that cost": _at("value", "value"),
}
"""What is compared, and where it stands in a verdict."""
