"""The comparison on Dask gives the numbers of the one in memory."""

import numpy as np
import pandas as pd
import pytest
from dask import dataframe as dd

import orthocal
from orthocal.datasets import simulate_cate
from orthocal.distributed import CausalCalibrator

DATA = simulate_cate(900, random_state=3)
ROWS = np.arange(900)
TABLE = pd.DataFrame(
    {
        "y": DATA.y,
        "a": DATA.treatment,
        "tau": 1 + 2 * DATA.effect,
        "weight": (ROWS % 4).astype(float),
        "group": (ROWS * 7) % 40,
        **DATA.nuisances,
    }
)


@pytest.mark.parametrize("more", [{}, {"sample_weight": "weight"}, {"sample_weight": "weight", "groups": "group"}])
@pytest.mark.parametrize("cost", [None, 0.4])
@pytest.mark.parametrize("parts", [1, 10])
def test_a_comparison_of_partitions_is_that_of_all_rows(more, cost, parts):
    frame = dd.from_pandas(TABLE, npartitions=parts)
    columns = {"outcome": "y", "treatment": "a", "prediction": "tau", **more}
    calibrator = CausalCalibrator(method="linear").fit(
        frame, **columns, nuisances={name: name for name in DATA.nuisances}
    )
    found = calibrator.compare(frame, level=0.9, cost=cost).to_dict()
    before = TABLE["tau"].to_numpy()
    given = {role: TABLE[name].to_numpy() for role, name in more.items()}
    loss = orthocal.orthogonal_loss("cate", DATA.X, DATA.y, treatment=DATA.treatment, nuisances=DATA.nuisances, **given)
    wanted = orthocal.compare(before, calibrator.calibrate(before), loss, level=0.9, cost=cost).to_dict()
    assert found.pop("verdict") == wanted.pop("verdict") == "improved"
    assert found.pop("figures") == wanted.pop("figures")
    assert (found["decision"] is None) == (cost is None)
    np.testing.assert_allclose(numbers(found), numbers(wanted), rtol=1e-10, atol=1e-14)


def numbers(record):
    decision = record["decision"] or {}
    flat = [
        value
        for key, value in {**record, **{f"of {k}": v for k, v in decision.items()}}.items()
        if key not in ("decision", "rivals")
    ]
    return np.hstack(flat)


def test_columns_far_from_zero_lose_no_digits():
    from orthocal.assessment.compare import Moments

    columns = np.array([np.ones(1000), 1e8 + np.arange(1000) % 2])
    one, other = Moments.of(columns[:, :300]), Moments.of(columns[:, 300:])
    assert one.merge(other).scatter[1, 1] == pytest.approx(250, rel=1e-10)
