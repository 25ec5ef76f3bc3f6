"""The section of a page about subgroups that were named to be corrected, before and after."""

from __future__ import annotations

from orthocal.assessment.audit_records import SHOWN, Audit
from orthocal.audit_plots import drawn_cells
from orthocal.formats import between, number, p_value
from orthocal.group_columns import value_in_words
from orthocal.group_maps import GroupMap
from orthocal.reporting.page.blocks import axes_for_page, picture_of
from orthocal.reporting.page.document import Block, Picture, Section, Table, Text, csv_of_columns
from orthocal.study import Calibration


def audit_sections(done: Calibration, place: str) -> list[Section]:
    """The subgroups that were named to be corrected, before and after."""
    if done.audit_before is None:
        return []
    blocks: list[Block] = [audit_picture(done.audit_before, done.audit_after, f"{place}audit")]
    for when, audit in {"Before": done.audit_before, "After": done.audit_after}.items():
        if audit is not None:
            blocks.append(audit_table(when, audit) if audit.found else Text(f"{when}: {audit.headline}"))
    none = "No subgroup stood out, so the map is that of the prediction alone."
    blocks.append(shifts_table(done.map) if isinstance(done.map, GroupMap) else Text(none))
    return [Section("Subgroups before and after", tuple(blocks))]


def audit_picture(before: Audit, after: Audit | None, name: str) -> Picture:
    """Draw the subgroups that were named, before and after."""
    from orthocal import plots

    when = {"before": before} if after is None else {"before": before, "after": after}
    words = "; ".join(
        f"{name}: {', '.join(str(cell) for cell in drawn_cells(audit)[::-1])}" for name, audit in when.items()
    )
    caption = (
        "By how much predictions are too high in each subgroup, with intervals that hold for all of them at once; filled where "
        "the adjusted test rejects."
    )
    ax = plots.audit_forest(before, axes_for_page(1.1 + 0.36 * len(drawn_cells(before))), after=after)
    return picture_of(ax, f"{words}.", caption, name, table=_cells_table(when))


def _cells_table(when: dict[str, Audit]) -> Table:
    """Return the cells that are drawn, before and after."""
    cells = [(name, cell) for name, audit in when.items() for cell in drawn_cells(audit)[::-1]]
    rows = tuple(
        (cell.name, name, f"{cell.rows:,.0f}", number(cell.excess), between(cell.interval), p_value(cell.p_value))
        for name, cell in cells
    )
    columns = {
        "subgroup": [cell.name for _, cell in cells],
        "when": [name for name, _ in cells],
        "rows": [cell.rows for _, cell in cells],
        "excess": [cell.excess for _, cell in cells],
        "lower": [cell.interval[0] for _, cell in cells],
        "upper": [cell.interval[1] for _, cell in cells],
        "p_value": [cell.p_value for _, cell in cells],
    }
    header = ("subgroup", "when", "rows", "too high by", "interval", "p-value, adjusted")
    caption = "Subgroups, before and after calibration"
    return Table(caption, header, rows, file="subgroups-before-after.csv", figures=csv_of_columns(columns))


def audit_table(when: str, audit: Audit) -> Table:
    """Return the cells that are off."""
    rows = tuple(
        (cell.name, f"{cell.rows:,.0f}", number(cell.excess), between(cell.interval), p_value(cell.p_value))
        for cell in audit.found[:SHOWN]
    )
    header = ("subgroup", "rows", "too high by", "interval", "p-value, adjusted")
    most = f" The {SHOWN} most surprising:" if len(audit.found) > SHOWN else ""
    return Table(f"{when}: {audit.headline}{most}", header, rows)


def shifts_table(fitted: GroupMap) -> Table:
    """Return what the map adds in each subgroup, round by round; of several bins the least and the most."""
    rows = []
    for number_of_round, one in enumerate(fitted.rounds, 1):
        names = [
            str(value) if one.column in fitted.made else f"{one.column} = {value_in_words(value)}"
            for value in one.values
        ]
        for name, row in zip(names or ["all rows"], one.shifts, strict=False):
            if row.any():
                added = number(row[0]) if len(row) == 1 else f"{number(row.min())} to {number(row.max())}"
                rows.append((f"{number_of_round}. {name}", added, "" if len(row) == 1 else f"{len(row)} bins"))
    return Table("What the map adds in subgroups, in turn", ("subgroup", "added", "by prediction"), tuple(rows))
