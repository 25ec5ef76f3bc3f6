"""Checks of a map."""

from __future__ import annotations

from orthocal.arrays import Floats
from orthocal.assessment.effect_band import EffectBand
from orthocal.assessment.parts import Check
from orthocal.formats import number, percent
from orthocal.maps import Map
from orthocal.study.checks.evidence import WARNING, passed


def inside_band(fitted: Map, prediction: Floats, band: EffectBand) -> Check:
    """The map stays inside the band for the average effect of people with the same prediction."""
    name, share = "map inside the band", band.outside(fitted.predict(prediction), prediction)
    figure = f"outside for {number(100 * share)}% of rows"
    if share == 0:
        return passed(name, figure, f"The map stays inside the {percent(band.level)} band, which is {band.meaning}.")
    outside, crossed = number(100 * share), band.crossed(prediction)
    if crossed > 0:
        sentence = (
            f"The ends of the {percent(band.level)} band cross for {number(100 * crossed)}% of rows: the average effect of "
            "people with that prediction falls as it rises."
        )
        return Check(name, WARNING, figure, sentence, "Use method 'histogram', which need not rise, or another model.")
    sentence = f"The map leaves the {percent(band.level)} band, which is {band.meaning}, for {outside}% of rows."
    return Check(name, WARNING, figure, sentence, "Compare it with method 'spline' or 'isotonic', which bend more.")
