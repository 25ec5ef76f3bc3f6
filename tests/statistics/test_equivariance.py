"""Scale and shift over the whole range of units, with the largest distance that was seen."""

import pytest

from orthocal.calibrators import CALIBRATORS
from orthocal.effects import EFFECTS
from tests.equivariance import NEAR, calibrated, distance

UNITS = [*((10.0**power, 0.0) for power in (-9, -6, -3, -1, 1, 3, 6, 9)), (1.0, 1e6), (1.0, -1e6), (1e-6, 1e3)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::orthocal.OverlapWarning")
@pytest.mark.parametrize("name", EFFECTS)
def test_the_map_moves_with_the_outcome_in_every_unit(name):
    before = calibrated(name)
    largest = dict.fromkeys(CALIBRATORS, 0.0)
    for scale, deviations in UNITS:
        after = calibrated(name, scale, deviations)
        largest = {method: max(far, distance(before[method], after[method])) for method, far in largest.items()}
    print(f"{name}: " + ", ".join(f"{method} {far:.0e}" for method, far in largest.items()))
    assert max(largest.values()) < NEAR
