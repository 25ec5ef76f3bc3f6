"""Of every effect: the mean loss that is printed is the sum of the parts that are printed."""

import numpy as np
import pytest

from orthocal import assess, orthogonal_loss
from orthocal.effects import EFFECTS
from orthocal.reporting.figures import figures_of
from tests.contracts.populations import LAW, POPULATIONS, VALUES

NUMBER = r"(-?[\d.,]+(?:e[-+]\d+)?)"


def below(X, v):
    """The true distribution of the outcome in the arm, in the populations of quantile and expectile."""
    return (LAW[np.asarray(X)[:, 0].astype(int)] * (np.asarray(v)[:, None] >= VALUES)).sum(axis=1)


def drawn(name, *, law=False, n=600):
    """Rows drawn from an effect's population, and a prediction that is off."""
    effect, population = POPULATIONS[name][0], POPULATIONS[name][1]()
    rng = np.random.default_rng(0)
    rows = rng.choice(len(population.cell), n, p=population.probability / population.probability.sum())
    prediction = 0.2 + 1.3 * population.effect[population.cell[rows]] + 0.3 * rng.standard_normal(n)
    nuisances = {key: value[rows] for key, value in population.nuisances_at(population.truth).items()}
    instrument = None if population.instrument is None else population.instrument[rows]
    loss = orthogonal_loss(
        effect,
        population.cell[rows][:, None].astype(float),
        population.outcome[rows],
        treatment=population.treatment[rows],
        instrument=instrument,
        event=None if population.event is None else population.event[rows],
        prediction=prediction,
        nuisances=nuisances | ({"below": below} if law else {}),
    )
    return prediction, loss


def adds_up(printed):
    """Four numbers as they are printed: mean loss, miscalibration, discrimination, uncertainty."""
    values = [float(one.replace(",", "")) for one in printed]
    rounding = sum(0.5 * 10 ** (np.floor(np.log10(abs(v))) - 3) if v else 0.0 for v in values)
    return abs(values[0] - (values[1] - values[2] + values[3])) <= rounding * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
@pytest.mark.parametrize(
    ("name", "law"), [*((name, False) for name in EFFECTS), ("quantile", True), ("expectile", True)]
)
def test_the_mean_loss_is_the_sum_of_its_parts_wherever_it_is_printed(name, law):
    verdict = assess(*drawn(name, law=law), bins=3, random_state=0)
    found = verdict.to_dict()
    parts = found["decomposition"]
    total = parts["miscalibration"] - parts["discrimination"] + parts["uncertainty"]
    assert found["risk"] == pytest.approx(total, rel=1e-12, abs=1e-13)
    shown = {line.name.strip(): line.figure for line in figures_of(verdict)}
    assert adds_up([shown[key] for key in ("mean loss", "= miscalibration", "- discrimination", "+ uncertainty")])
