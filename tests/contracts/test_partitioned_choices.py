"""Choices among models are the same on every engine."""

import numpy as np
import pytest

from orthocal import OrthocalError, QuadraticLoss, Study
from orthocal.assessment.rivals_side_by_side import rival_sums
from tests.contracts.test_engines import ENGINES, divided, every_engine
from tests.contracts.test_engines import threads as threads  # noqa: PLC0414  # a fixture
from tests.contracts.test_partitioned_checks import ROLES, people

pytestmark = [
    pytest.mark.filterwarnings("ignore::orthocal.engines.partitioned.passes.PartitionWarning"),
    pytest.mark.filterwarnings("ignore::orthocal.SkewWarning"),
    pytest.mark.usefixtures("threads"),
]
RIVALS = ["tau", "half", "same"]


def rivals(weight=None):
    """Three models: one twice too large, a good one, and a copy of the first but for rounding."""
    frame = people(weight)
    later = frame.cluster % 5 < 2  # clusters stay whole
    return frame.assign(half=(frame.tau - 1) / 2, same=frame.tau * (1 + 1e-15), later=later)


def plain(record, without=("decomposition", "figures")):
    """Numbers and words of a record by path; for the decomposition halves of the rows are drawn in another way."""
    found = {}
    for name, value in record.items() if isinstance(record, dict) else enumerate(record):
        if isinstance(value, dict | list | tuple) and name not in without:
            found |= {f"{name}/{path}": one for path, one in plain(value).items()}
        elif name not in without:
            found[str(name)] = value
    return found


def assert_alike(there, here, drawn=()):
    """Alike to 1e-8, but for what is drawn."""
    assert there.keys() == here.keys()
    for path, value in here.items():
        if not isinstance(value, float):
            assert there[path] == value, path
        elif not any(word in path for word in drawn):
            assert there[path] == pytest.approx(value, rel=1e-8, abs=1e-8), path


@every_engine
@pytest.mark.parametrize(("weight", "groups"), [(None, None), ("w", None), (None, "cluster")])
def test_choices_are_those_of_memory(tmp_path, engine, weight, groups):
    frame = rivals("whole" if weight else None)
    roles = {**ROLES, "covariates": [], "weight": weight, "groups": groups}
    here = Study(frame, **roles).choose(RIVALS, method="linear", holdout="later", cost=0.2, draws=20)
    # Where masses differ, verdicts on constants know rows by the moments of their one cell, unless they are exact.
    study = Study(ENGINES[engine](divided(frame, "uneven"), tmp_path), **roles, exact=weight is not None)
    there = study.choose(RIVALS, method="linear", holdout="later", cost=0.2, draws=20)
    assert there.confidence_set == here.confidence_set
    assert there.checks == here.checks
    assert there.best.startswith("half")
    alike = {rival.name: rival.relative_loss for rival in there.rivals}
    assert alike["same"] == alike["tau"]
    drawn = ("range/p_value",) if groups or weight else ()  # signs of clusters, and of rows of weight 0
    assert_alike(plain(there.to_dict()), plain(here.to_dict()), drawn)


@pytest.mark.parametrize("engine", ["dask", "local"])
def test_a_choice_warns_of_what_failed(tmp_path, engine):
    frame = rivals().assign(half=lambda table: table.y)
    study = Study(ENGINES[engine](divided(frame, 3), tmp_path), **ROLES, covariates=[])
    found = study.choose(["tau", "half"], method="linear", holdout="later", draws=20)
    assert "Do not rely on this before the failed check is resolved: outcome as prediction" in found.verdict
    with pytest.raises(OrthocalError, match="a choice must rest on rows that no map saw"):
        study.choose("tau", holdout=0)


def test_predictions_that_are_alike_in_some_partitions_only_keep_their_losses():
    rng = np.random.default_rng(0)
    loss, one = QuadraticLoss(rng.standard_normal(60), np.ones(60)), rng.standard_normal(60)
    others = [np.zeros(60), one, np.where(np.arange(60) < 30, one, 2 * one), one * (1 + 1e-15)]
    first, second = (
        rival_sums([prediction[rows] for prediction in others], loss[rows], 0.1)
        for rows in (np.arange(30), np.arange(30, 60))
    )
    whole, merged = rival_sums(others, loss, 0.1), first.merge(second)
    np.testing.assert_allclose(merged.paired.total, whole.paired.total)
    np.testing.assert_allclose(merged.paired.scatter, whole.paired.scatter, atol=1e-12)
    assert merged.paired.total[2] == merged.paired.total[4] != merged.paired.total[3]
