import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from orthocal import QuadraticLoss
from orthocal.datasets import simulate_cate

mpl.use("Agg")
MORE = {
    "test_checks",
    "test_cli_dask",
    "test_distributed",
    "test_docs",
    "test_equivariance",
    "test_examples",
    "test_experiments",
    "test_nothing_lost",
    "test_row_order",
    "test_spark",
    "test_study",
}
"""Tests that start processes, run whole experiments or pages, or repeat others in many forms: `make test-more`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.stem in MORE or item.path.parent.name == "statistics":
            item.add_marker("more")


@pytest.fixture(scope="session")
def simulated():
    return simulate_cate(1200, random_state=7)


@pytest.fixture
def scored():
    """Predictions with ties and a weighted quadratic loss."""
    rng = np.random.default_rng(3)
    prediction = np.round(rng.standard_normal(300), 1)
    weight = rng.integers(1, 4, 300).astype(float)
    return prediction, QuadraticLoss(weight * (prediction + rng.standard_normal(300)), weight)


@pytest.fixture(scope="session")
def table():
    """A table for the command line: covariates, a treatment, an outcome and two columns of predictions."""
    data = simulate_cate(600, random_state=0)
    columns = {f"x{j}": data.X[:, j] for j in range(5)}
    return pa.table({**columns, "a": data.treatment, "y": data.y, "tau": 1 + 2 * data.effect, "other": data.effect})


@pytest.fixture
def data_csv(table, tmp_path):
    csv.write_csv(table, tmp_path / "data.csv")
    return tmp_path / "data.csv"
