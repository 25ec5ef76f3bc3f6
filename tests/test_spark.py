"""On Spark: what the contract of engines does not say. Bad partitions by name, lost workers, samples, columns written back."""

import os
import signal
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from orthocal import Isotonic, OrthocalError, Study
from orthocal.assessment.records import Settings
from orthocal.engines.opening import opened
from orthocal.engines.partitioned.fit import fitted
from orthocal.engines.partitioned.passes import PartitionWarning
from orthocal.engines.partitioned.verdict import judged
from orthocal.engines.spark import table as spark_table
from orthocal.engines.spark.table import SparkTable
from tests.contracts.test_engines import GIVEN, divided, rows, source_of
from tests.spark_session import frame_of, session

pytestmark = pytest.mark.filterwarnings("ignore::orthocal.engines.partitioned.passes.PartitionWarning")


@pytest.fixture(scope="module")
def trial():
    frame = rows(3000).assign(person=np.arange(3000))
    frame["fold"], frame["held"] = frame.person % 3, frame.person % 4 == 0
    return frame


@pytest.fixture(scope="module")
def on_spark(trial):
    return frame_of(divided(trial, 5)).persist()


STUDY = {"outcome": "y", "treatment": "a", "random_state": 0, "folds": "fold"}


def test_a_study_gives_the_numbers_of_memory(trial, on_spark):
    """With columns of folds and of rows held out; nuisances learnt on a sample of all rows, by learners the user passes."""
    more = STUDY | {"covariates": ["x"], "nuisances": {"propensity": 0.5}, "learners": {"outcome": LinearRegression()}}
    here, there = (
        Study(data, **more, **own).calibrate("tau", "linear", holdout="held")
        for data, own in ((trial, {}), (on_spark, {"sample": 10**9, "key": "person"}))
    )
    assert there.after.error == pytest.approx(here.after.error, abs=1e-8)
    assert there.verdict == here.verdict
    table = there.table()
    assert isinstance(table, type(on_spark))
    wide = table.toPandas().sort_values("person")
    np.testing.assert_allclose(wide.tau_calibrated, here.table().tau_calibrated, atol=1e-10)
    np.testing.assert_array_equal(wide.y, trial.y)


def test_bad_partitions_are_named(trial):
    broken = divided(trial, 3)
    broken[1] = broken[1].assign(y=broken[1].y.where(broken[1].person != 1017))
    table = SparkTable.of_frame(frame_of(broken))
    with pytest.raises(OrthocalError, match=r"^Partition 1: `y` must be finite in every row; row 17 is nan\."):
        fitted("linear", source_of(table), exact=False)
