"""The section of a page about unmeasured confounding."""

from __future__ import annotations

from orthocal.formats import number
from orthocal.reporting.page.blocks import shown_figures
from orthocal.reporting.page.document import Block, Picture, Pictures, Section, Text
from orthocal.reporting.page.render import picture
from orthocal.reporting.sensitivities import STRENGTH, sensitivity_figures
from orthocal.sensitivity import Sensitivity

CAPTION = (
    "Each line joins strengths of an unmeasured confounder at which the interval ends at the same number; beyond the thick line "
    "it includes 0. Points: measured covariates, had they not been measured."
)


def sensitivity_section(found: Sensitivity, place: int) -> Section:
    """Return robustness values, contour pictures and figures of one prediction; pictures of a page differ by their place."""
    title = f"{found.name}: sensitivity to unmeasured confounding"
    if found.reason:
        return Section(title, (Text(found.reason),))
    kinds = ["average", *(["error"] if found.robustness.error is not None else [])]
    pictures = tuple(_contours(found, of, f"strength-{of}-{place}") for of in kinds)
    blocks: tuple[Block, ...] = (
        Text(found.robustness.text),
        Pictures(pictures, CAPTION) if len(pictures) > 1 else pictures[0],
        shown_figures("Unmeasured confounding", sensitivity_figures(found)),
        Text(STRENGTH),
    )
    return Section(title, blocks)


def _contours(found: Sensitivity, of: str, name: str) -> Picture:
    marks = ", ".join(f"{one.covariate} {one.outcome:.1%} and {one.treatment:.1%}" for one in found.benchmarks)
    still = found.at_product(0.0)[of].interval
    words = f"Without confounding the interval is {number(still[0])} to {number(still[1])}."
    words += f" Strengths of covariates: {marks}." if marks else ""
    return picture(found.plot(of=of).figure, words, CAPTION, name)  # type: ignore[arg-type]
