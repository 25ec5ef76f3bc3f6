"""Sections of a report: each a function of a record, empty where the record has nothing to say."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import Any

from orthocal import __version__
from orthocal.assessment import Assessment
from orthocal.assessment.parts import Check
from orthocal.formats import between, estimate, number, percent
from orthocal.group_maps import GroupMap
from orthocal.reporting.page.blocks import (
    decision_picture,
    forest_picture,
    map_picture,
    overlap_picture,
    ranking_picture,
    survival_pictures,
)
from orthocal.reporting.page.document import Block, Code, Section, Text
from orthocal.reporting.page.tables import base_of, checks_table, how_facts, overlap_table
from orthocal.reporting.page.top import capital
from orthocal.study import Calibration
from orthocal.study.recommendation import USE_CALIBRATED

SNIPPET = """import orthocal

calibration_map = orthocal.load("map.json")
calibrated = calibration_map.predict(predictions)

# on the command line:  orthocal apply map.json new.csv --prediction tau --out calibrated.csv
# in a database:        orthocal export map.json --format sql"""


def checks_sections(checks: tuple[Check, ...]) -> list[Section]:
    """What was checked, what did not pass first."""
    return [Section("Checks", (checks_table(checks),), folded=True)] if checks else []


def map_section(done: Calibration, place: str) -> Section:
    """What the map does to a prediction."""
    return Section("What calibration does to a prediction", tuple(_map_blocks(done, place)))


def _map_blocks(done: Calibration, place: str) -> Iterator[Block]:
    """The map as a picture, which map it is, and why the method was chosen."""
    if done.before.is_constant:
        (only,) = base_of(done.map)(done.before.predictions[:1])
        yield Text(f"The map takes the one prediction, {number(done.before.predictions[0])}, to {number(only)}.")
    else:
        yield map_picture(done.map, done.before, done.band_or_none, f"{place}map")
    ships = "The map was fitted on the rows that were not held out."
    if done.recommendation.action != USE_CALIBRATED:
        ships += f" It is not what is recommended, which is: {done.recommendation.action}."
    if done.map is not done.verified_map:
        ships = (
            f"The map that ships was fitted again on all rows; it is {number(done.distance or 0.0)} (root mean square) away from "
            "the one that the verdict after calibration belongs to."
        )
    yield Text(ships)
    if done.reason:
        yield Text(f"Method: {done.reason}")


def ranking_sections(verdict: Assessment, name: str) -> list[Section]:
    """Whether the prediction ranks people by what they gain."""
    if verdict.rate is None:
        return []
    return [Section("Ranking", (ranking_picture(verdict, name), Text(_ranking(verdict))))]


def _ranking(verdict: Assessment) -> str:
    """Say whether the prediction ranks, with the figures it rests on."""
    rate: Any = verdict.rate
    autoc, qini = (estimate(one.value, one.interval) for one in (rate.autoc, rate.qini))
    return (
        f"{capital(verdict.ranking or '')}: AUTOC is {autoc} and Qini {qini}, with {percent(verdict.level)} intervals in "
        "brackets; both are 0 for a random order. A monotone map leaves them as they are."
    )


def decision_sections(verdict: Assessment, name: str) -> list[Section]:
    """What deciding by the prediction is worth, where a cost was given."""
    if verdict.value is None:
        return []
    curve = [] if verdict.is_constant else [decision_picture(verdict, name)]
    return [Section("What deciding by it is worth", (*curve, Text(_value(verdict))))]


def _value(verdict: Assessment) -> str:
    value: Any = verdict.value
    return (
        f"At a cost of {number(value.cost)} per treated person the prediction treats {value.share_treated:.1%} and gains "
        f"{number(value.value)} per row ({percent(verdict.level)} interval {between(value.interval)}); treating everyone gains "
        f"{number(value.treating_everyone)}, no one 0."
    )


def subgroup_sections(verdict: Assessment, name: str) -> list[Section]:
    """Subgroups, where they were named."""
    return [Section("Subgroups", (forest_picture(verdict, name),))] if verdict.subgroups else []


def overlap_section(verdict: Assessment, name: str) -> Section:
    """Overlap, and how much unmeasured confounding would overturn the verdict."""
    return Section("Overlap and unmeasured confounding", tuple(_overlap_blocks(verdict, name)), folded=True)


def _overlap_blocks(verdict: Assessment, name: str) -> Iterator[Block]:
    """Propensities and survival curves, as far as the verdict has them, and how much confounding would overturn it."""
    if verdict.overlap is not None:
        if verdict.overlap.levels:
            yield overlap_picture(verdict, name)
        yield from survival_pictures(verdict, name)
        yield overlap_table(verdict.overlap)
    yield Text(verdict.sensitivity.text)


def snippet_of(done: Calibration) -> str:
    """Return how the map is used; a map of groups needs their columns."""
    return SNIPPET.replace("(predictions)", "(predictions, table)") if isinstance(done.map, GroupMap) else SNIPPET


def use_section(snippet: str) -> Section:
    """How to use the map."""
    return Section("Use the map", (Text("Load the map and calibrate new predictions:"), Code(snippet)), folded=True)


def how_section(verdict: Assessment, how: dict[str, str]) -> Section:
    """Return how it was computed and what must hold."""
    blocks: list[Block] = [how_facts(verdict, how)]
    if verdict.origin is not None:
        blocks.append(Text(f"What must hold: {verdict.origin.assumption}"))
    blocks.append(
        Text(
            "The predictions must come from a model that was not trained on these rows. The error is that of bins of the "
            "prediction, a lower bound of the error over all its values."
        )
    )
    return Section("How it was computed", tuple(blocks), folded=True)


def foot() -> str:
    """Return the versions behind a page."""
    from importlib.metadata import version

    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return f"orthocal {__version__}, Python {platform.python_version()}, {libraries}"
