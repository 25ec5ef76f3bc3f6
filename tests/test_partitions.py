"""Partitions must not show in an answer: effects that need all rows, and labels of different types."""

from decimal import Decimal

import numpy as np
import pytest

dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

import dask  # noqa: E402
import pyarrow as pa  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402

from orthocal import OrthocalError, PseudoOutcome, orthogonal_loss  # noqa: E402
from orthocal import assess as assess_in_memory  # noqa: E402
from orthocal.calibrators import Linear  # noqa: E402
from orthocal.datasets import simulate_cate  # noqa: E402
from orthocal.distributed import CausalCalibrator, assess  # noqa: E402
from orthocal.effects import EFFECTS, sums_of  # noqa: E402
from orthocal.engines.dask.training import _fit_on_dask  # noqa: E402
from orthocal.engines.partitioned.keys import keys_of  # noqa: E402
from orthocal.engines.partitioned.preparation import require_separable, require_separable_targets  # noqa: E402
from orthocal.nuisances import Fitted, Nuisance  # noqa: E402
from orthocal.nuisances.wrapped import Standardised  # noqa: E402
from tests.contracts.populations import POPULATIONS  # noqa: E402

ROLES = {"outcome": "y", "treatment": "a", "prediction": "tau"}


@pytest.fixture(autouse=True)
def _threads():
    with dask.config.set(scheduler="synchronous"):
        yield


def table(n=600):
    """Rows sorted by outcome, so that partitions differ, with 60 clusters."""
    data = simulate_cate(n, random_state=0)
    columns = {"y": data.y, "a": data.treatment, "tau": data.effect, "p": data.nuisances["propensity"]}
    return pd.DataFrame({**columns, "g": np.arange(n) % 60}).sort_values("y", ignore_index=True)


def propensity(rows):
    return Nuisance("propensity", "propensity", rows.treatment.astype(float), is_probability=True, is_divisor=True)


def weighting(rows, g):
    return (rows.treatment / g["propensity"] - (1 - rows.treatment) / (1 - g["propensity"])) * rows.outcome


def relative_to_the_mean(mean, sums=None):
    """The effect as a share of the mean outcome of everyone."""
    return PseudoOutcome(
        lambda rows: [propensity(rows)],
        lambda rows, g: weighting(rows, g) / mean(rows, g),
        lambda rows, g: np.zeros(len(rows)),
        sums=sums,
    )


def outcome_sums(rows, g):
    del g
    return {"outcome": [rows.weight @ (rows.outcome + 5), rows.weight.sum()]}


def of_all(rows, g):
    total, weight = g.sums["outcome"]
    return total / weight


def test_an_effect_that_looks_at_other_rows_is_refused_before_any_work():
    """Its slope would be another for every number of partitions."""
    careless = relative_to_the_mean(lambda rows, g: (rows.outcome + 5).mean())
    frame = dd.from_pandas(table(), npartitions=3)
    for nuisances in ({"propensity": "p"}, {}):  # given, or still to be learnt by a learner that is never asked
        with pytest.raises(OrthocalError, match="In partitions the loss of some rows must not depend on the others"):
            CausalCalibrator(careless, "linear", sample=100, learners={"propensity": Never()}).fit(
                frame, **ROLES, nuisances=nuisances, key="g"
            )


class Never:
    """A learner that must not be asked."""

    def get_params(self, deep=True):
        del deep
        return {}

    def fit(self, X, y):
        raise AssertionError("work was done")

    def predict_proba(self, X):
        raise AssertionError("work was done")


def test_with_its_sums_the_effect_is_that_of_all_rows_in_any_partitions():
    rows, careful = table(), relative_to_the_mean(of_all, outcome_sums)
    loss = orthogonal_loss(careful, rows[["g"]], rows.y, treatment=rows.a, nuisances={"propensity": rows.p})
    expected = Linear().fit(rows.tau.to_numpy(), loss).map_
    for partitions in (1, 2, 5):
        frame = dd.from_pandas(rows, npartitions=partitions)
        found = CausalCalibrator(careful, "linear").fit(frame, **ROLES, nuisances={"propensity": "p"}).map_
        assert found.slope == pytest.approx(expected.slope, rel=1e-12)
        assert found.intercept == pytest.approx(expected.intercept, rel=1e-10)


def test_a_target_that_looks_at_other_rows_is_refused_where_partitions_are_learnt_from():
    effect = PseudoOutcome(
        lambda rows: [Nuisance("outcome", "outcome", rows.outcome - rows.outcome.mean())],
        lambda rows, g: g["outcome"],
        lambda rows, g: rows.outcome - g["outcome"],
    )
    frame = dd.from_pandas(table(), npartitions=3)
    with pytest.raises(OrthocalError, match="the target of a nuisance of some rows must not depend"):
        CausalCalibrator(effect, "linear").fit(frame, **ROLES, covariates=["g"])


@pytest.mark.parametrize("name", EFFECTS)
def test_our_own_effects_look_at_other_rows_through_their_sums_only(name):
    effect, population = POPULATIONS[name][0], POPULATIONS[name][1]()
    rows = population.observations()
    values = {name: one(rows.prediction) if callable(one) else one for name, one in population.nuisances.items()}
    fitted = Fitted(values, clip=0.0)
    require_separable(effect, rows, fitted)
    assert all(isinstance(value, np.ndarray) for value in sums_of(effect, rows, fitted).values())


def test_our_own_targets_are_those_of_their_rows():
    for name in ("cate", "catt", "overlap", "late"):
        effect, population = POPULATIONS[name][0], POPULATIONS[name][1]()
        require_separable_targets(effect, population.observations())


def in_two_files(rows, change):
    """Return a Dask frame whose second partition holds its clusters in another type."""
    parts = [rows.iloc[::2].reset_index(drop=True), rows.iloc[1::2].reset_index(drop=True)]
    parts[1] = parts[1].assign(g=change(parts[1].g))
    return dd.from_delayed([dask.delayed(part, pure=False) for part in parts], meta=parts[0][:0], verify_meta=False)


def test_a_cluster_is_one_cluster_whatever_type_its_files_hold_it_in():
    rows = table()
    rows["g"] = np.arange(len(rows)) // 2 % 60  # half of every cluster is in either file
    expected = assess_in_memory(
        rows.tau,
        orthogonal_loss(
            "cate",
            rows[["p"]],
            rows.y,
            treatment=rows.a,
            groups=rows.g,
            nuisances={"propensity": rows.p, **means(rows)},
        ),
        random_state=0,
    )
    known = {"propensity": "p", "outcome_control": 0.0, "outcome_treated": 0.0}
    for change in (lambda g: g.astype(float), lambda g: g.astype("Int64"), lambda g: g.astype(object), lambda g: g):
        found = assess(in_two_files(rows, change), **ROLES, groups="g", nuisances=known, random_state=0)
        assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-9)
        assert found.average.interval == pytest.approx(expected.average.interval, rel=1e-9)


def means(rows):
    return {name: np.zeros(len(rows)) for name in ("outcome_control", "outcome_treated")}


def test_clusters_that_are_text_here_and_numbers_there_are_refused():
    known = {"propensity": "p", "outcome_control": 0.0, "outcome_treated": 0.0}
    frame = in_two_files(table(), lambda g: g.astype(str))
    with pytest.raises(
        OrthocalError, match="Column 'g' must hold the same kind of value in every partition; partition 0"
    ):
        assess(frame, **ROLES, groups="g", nuisances=known)


NUMBERS = [
    pd.Series([5, 0, 7]),
    pd.Series([5.0, -0.0, 7.0]),
    pd.Series([5, 0, 7], dtype="int8"),
    pd.Series([5, 0, 7], dtype="float32"),
    pd.Series([5, 0, 7], dtype="Int64"),
    pd.Series([5, 0, 7], dtype=pd.ArrowDtype(pa.float64())),
    pd.Series([5, 0.0, np.int64(7)], dtype=object),
    pd.Series([Decimal(5), Decimal(0), Decimal("7.0")], dtype=object),
]
WORDS = [pd.Series(["a", "b"], dtype=kind) for kind in (object, "string", "category", pd.ArrowDtype(pa.string()))]
TIMES = [pd.Series(np.array(["2020-01-01"], dtype=f"datetime64[{unit}]")) for unit in ("ns", "us", "s")]
LARGE = [pd.Series([2**60 + 1, 5]), pd.Series([2**60 + 1, 5], dtype="uint64")]


@pytest.mark.parametrize("alike", [NUMBERS, WORDS, TIMES, LARGE])
def test_a_value_has_one_key_whatever_type_holds_it(alike):
    first, *others = [keys_of(column.to_frame()) for column in alike]
    assert len(set(first.tolist())) == len(first)
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_whole_numbers_too_large_for_a_float_stay_apart():
    keys = keys_of(pd.DataFrame({"key": [2**60, 2**60 + 1, 2**60 + 2]}))
    assert len(set(keys.tolist())) == 3


def test_default_learners_on_partitions_see_standard_targets():
    """LightGBM keeps outcomes in single precision, in which those far from 0 are all alike."""
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((200, 2)), rng.standard_normal(200)
    found = []
    for shift in (0.0, 1e6):
        y = X[:, 0] + noise + shift
        probed = Nuisance("outcome", "outcome", y[:50])
        found.append(_fit_on_dask(Standardised(SinglePrecision()), probed, X, y, np.ones(200))(X) - shift)
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)


class SinglePrecision(LinearRegression):
    """A learner that keeps its target in single precision."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y.astype(np.float32).astype(float), sample_weight)
