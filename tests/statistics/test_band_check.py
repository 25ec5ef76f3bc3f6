"""How often the check *map inside the band* alarms on maps that can follow the effect, and on maps that cannot."""

from collections import Counter

import numpy as np
import pytest

from orthocal.assessment.effect_band import bins_of, effect_band
from orthocal.calibrators import new_calibrator
from orthocal.study.checks import checks_of_map
from tests.effect_band_truths import BINDING, drawn

pytestmark = pytest.mark.slow
CAN_FOLLOW = {
    "isotonic": tuple(BINDING),
    "linear": ("flat", "affine"),
    "constant": ("flat",),
    "auto": tuple(BINDING),
}
"""Methods, and shapes that they can follow. A histogram's map is the middle of its band."""
CANNOT_FOLLOW = {"constant": ("affine", "step", "plateau"), "linear": ("step", "plateau")}


def alarmed(method, rows, shape, n, draw):
    """Return whether the check warns of a map fitted to the rows of the band."""
    prediction, loss, _ = drawn(rows, BINDING[shape], n, np.random.default_rng([23, draw, n]))
    fitted = new_calibrator(method).fit(prediction, loss)
    band = effect_band(prediction, loss, bins=bins_of(fitted, fitted.map_), draws=500)
    (check,) = checks_of_map(fitted.map_, prediction, band)
    return check.result == "warning"


def counted(shapes_of, draws, sizes, kinds):
    """Return counts of maps and of alarms by method, shape and number of rows."""
    made, alarms = Counter(), Counter()
    for method, shapes in shapes_of.items():
        for shape in shapes:
            for rows in kinds:
                for n in sizes:
                    for draw in range(draws):
                        made[method, shape, n] += 1
                        alarms[method, shape, n] += alarmed(method, rows, shape, n, draw)
    return made, alarms


def shown(made, alarms):
    for (method, shape, n), count in made.items():
        print(f"{method}, {shape}, {n} rows: {alarms[method, shape, n]} alarms of {count}")
    for method in dict.fromkeys(method for method, _, _ in made):
        both = (sum(count for key, count in one.items() if key[0] == method) for one in (alarms, made))
        print("{}: {} alarms of {}".format(method, *both))


def test_false_alarms_are_as_rare_as_the_level_says():
    made, alarms = counted(CAN_FOLLOW, 15, [1000, 4000], ["alone", "weighted", "clustered"])
    shown(made, alarms)
    for method in CAN_FOLLOW:
        count, wrong = (sum(own for key, own in one.items() if key[0] == method) for one in (made, alarms))
        assert wrong <= 0.05 * count + 2.6 * np.sqrt(0.05 * 0.95 * count)


def test_maps_that_cannot_follow_are_found_out():
    made, alarms = counted(CANNOT_FOLLOW, 15, [1000, 4000], ["alone"])
    shown(made, alarms)
    assert all(alarms[key] >= 0.8 * count for key, count in made.items() if key[2] == 4000)
