"""Laws of every effect, checked exactly; and the paper's printed errors, planted, are found."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest

from orthocal import (
    CATE,
    LATE,
    BoundedCATE,
    HingeLoss,
    OrthocalError,
    OverlapWarning,
    Population,
    PseudoOutcome,
    QuadraticLoss,
    check_orthogonality,
)
from orthocal.effects import EFFECTS
from orthocal.effects.check import mean_score
from orthocal.nuisances import Fitted
from orthocal.solvers import constants
from tests.contracts import populations
from tests.contracts.populations import POPULATIONS

every_effect = pytest.mark.parametrize("name", EFFECTS)


def test_every_registered_effect_has_a_population():
    assert set(POPULATIONS) == set(EFFECTS)


@every_effect
def test_it_is_orthogonal(name):
    effect, population = POPULATIONS[name]
    report = check_orthogonality(effect, population())
    assert report.passed, f"{name}\n{report}"
    assert report.second_order > 1e-3  # the errors tried are not harmless ones


@every_effect
def test_true_nuisances_give_the_true_effect(name):
    effect, population = POPULATIONS[name][0], POPULATIONS[name][1]()
    loss = effect.loss(population.observations(), Fitted(population.nuisances_at(population.truth), clip=0.0))
    found = constants(loss, population.cell, len(population.effect))
    np.testing.assert_allclose(found, population.effect, atol=1e-9)


@every_effect
def test_halving_a_joint_nuisance_error_quarters_the_score(name):
    effect, population = POPULATIONS[name][0], POPULATIONS[name][1]()
    jointly = {}
    for errors in population.ways_to_be_wrong().values():
        for nuisance, error in errors.items():
            jointly[nuisance] = jointly.get(nuisance, 0) + error
    sizes = [np.abs(mean_score(effect, population, population.truth, jointly, h)) for h in (0.02, 0.01)]
    moved = sizes[0] > 1e-7
    assert moved.any()
    np.testing.assert_allclose(sizes[0][moved] / sizes[1][moved], 4, rtol=0.15)


def test_compliers_are_orthogonal_and_recovered():
    population = populations.late()
    assert check_orthogonality(LATE(target="compliers"), population).passed


def test_the_lower_end_is_the_upper_end_of_the_outcome_turned_round():
    upper = populations.bound()
    turned = {name: value if name == "propensity" else -value for name, value in upper.nuisances.items()}
    lower = replace(upper, outcome=-upper.outcome, nuisances=turned, effect=-upper.effect)
    assert check_orthogonality(BoundedCATE(2.0, "lower"), lower).passed


@pytest.mark.parametrize("nuisance", ["propensity", "outcome_control", "outcome_treated"])
def test_the_cate_has_no_bias_at_all_along_one_nuisance(nuisance):
    population = populations.cate()
    error = {nuisance: np.array([0.1, -0.2, 0.05])[population.cell]}
    np.testing.assert_allclose(mean_score(CATE(), population, population.truth, error), 0, atol=1e-13)


def test_the_bias_of_the_cate_is_the_product_the_formula_sheet_gives():
    # mathematics 3.1: (pi - pi0) [dmu1 / pi + dmu0 / (1 - pi)]
    population = populations.cate()
    dpi, dmu0, dmu1 = np.array([0.1, -0.2, 0.05]), np.array([0.5, 1.0, -0.7]), np.array([-0.4, 0.8, 1.1])
    errors = {"propensity": dpi, "outcome_control": dmu0, "outcome_treated": dmu1}
    errors = {name: error[population.cell] for name, error in errors.items()}
    score = mean_score(CATE(), population, population.truth, errors)
    pi = populations.PI + dpi
    np.testing.assert_allclose(-score, dpi * (dmu1 / pi + dmu0 / (1 - pi)), atol=1e-14)


def planted(chi):
    """An effect with a printed formula in place of ours; `chi(rows, g)`."""
    return PseudoOutcome(nuisances=lambda rows: [], m=chi, correction=lambda rows, g: np.zeros(len(rows)))


def test_the_printed_sign_of_the_derivatives_correction_is_found():
    """Mathematics 12.1."""
    wrong = planted(lambda rows, g: g["outcome_derivative"] - g["score_correction"] * (rows.outcome - g["outcome"]))
    report = check_orthogonality(wrong, populations.derivative())
    assert not report.passed
    assert report.bias < 1e-10  # unbiasedness does not see it
    assert report.first_order["outcome"] > 0.1


@dataclass(frozen=True)
class PlugInWeight:
    """Squared loss on the pseudo-outcome, weighted by a fitted chance: not orthogonal in it (mathematics 2.1, 2.3)."""

    def strata(self, rows):
        return rows.treatment

    def nuisances(self, rows):
        return []

    def loss(self, rows, g):
        inner = CATE().loss(rows, g)
        return QuadraticLoss(g["propensity"] * inner.numerator, g["propensity"] * inner.denominator, rows.weight)


def test_a_plug_in_weight_is_refused():
    report = check_orthogonality(PlugInWeight(), populations.cate())
    assert max(report.bias, *report.first_order.values()) < 1e-10  # the truth, cell by cell, does not see it
    assert report.first_order_elsewhere["propensity"] > 0.01
    assert not report.passed
    assert "FAILED" in str(report)


@dataclass(frozen=True)
class UncorrectedPinball:
    """Pinball loss with inverse propensity weights alone."""

    quantile: float = 0.5

    def strata(self, rows):
        return rows.treatment

    def nuisances(self, rows):
        return []

    def loss(self, rows, g):
        weight = rows.weight * (rows.treatment == 1) / g["propensity"]
        return HingeLoss(rows.outcome, weight, self.quantile * weight, weight=rows.weight)


@pytest.mark.parametrize("kept", [["propensity"], ["propensity", "below"]])
def test_an_uncorrected_pinball_loss_is_refused(kept):
    # With a nuisance that it does not use it is judged as a conditional loss: at the best constants of pooled cells.
    population = populations.quantile()
    population = replace(population, nuisances={name: population.nuisances[name] for name in kept})
    report = check_orthogonality(UncorrectedPinball(), population)
    assert max(report.bias, *report.first_order.values()) < 1e-10
    assert report.first_order_elsewhere["propensity"] > 0.01
    assert not report.passed


@pytest.mark.parametrize("name", ["cate", "catt", "overlap"])
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_check_does_not_depend_on_the_unit_of_the_outcome(name, scale):
    effect, population = POPULATIONS[name][0], POPULATIONS[name][1]()
    scaled = {
        nuisance: value if nuisance == "propensity" else scale * value
        for nuisance, value in population.nuisances.items()
    }
    changed = replace(
        population, outcome=scale * population.outcome, nuisances=scaled, effect=scale * population.effect
    )
    assert check_orthogonality(effect, changed).passed


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_a_plug_in_weight_is_refused_in_every_unit(scale):
    population = populations.cate()
    scaled = {name: value if name == "propensity" else scale * value for name, value in population.nuisances.items()}
    changed = replace(
        population, outcome=scale * population.outcome, nuisances=scaled, effect=scale * population.effect
    )
    assert not check_orthogonality(PlugInWeight(), changed).passed


def wald_population():
    """The LATE's population in the paper's own nuisances: tau, q, pi and p = E[Y | z = 1] - E[Y | z = 0]."""
    base = populations.late()
    n = base.nuisances
    p, q, pi = n["outcome_z1"] - n["outcome_z0"], n["treatment_z1"] - n["treatment_z0"], n["instrument_propensity"]
    h = pi * n["outcome_z1"] + (1 - pi) * n["outcome_z0"]
    e = pi * n["treatment_z1"] + (1 - pi) * n["treatment_z0"]
    return replace(base, nuisances={"p": p, "q": q, "pi": pi, "h": h, "e": e})


def right(rows, g):
    """The centred form, mathematics 12.4."""
    tau, beta = g["p"] / g["q"], g["pi"] * (1 - g["pi"]) * g["q"]
    return tau + ((rows.outcome - g["h"]) - tau * (rows.treatment - g["e"])) * (rows.instrument - g["pi"]) / beta


def wrong_sign(rows, g):
    """As printed, the first slip of mathematics 12.4."""
    tau = g["p"] / g["q"]
    return 2 * tau - right(rows, g)


def wrong_denominator(rows, g):
    """The second: the Wald denominator in place of the covariance."""
    tau = g["p"] / g["q"]
    return tau + (right(rows, g) - tau) * g["pi"] * (1 - g["pi"])


def wrong_experiment(rows, g):
    """As printed for the experiment: the instrument's propensity as denominator."""
    tau = g["p"] / g["q"]
    return tau + (right(rows, g) - tau) * g["q"] * (1 - g["pi"])


def test_the_centred_form_of_the_late_is_orthogonal_in_its_own_nuisances():
    assert check_orthogonality(planted(right), wald_population()).passed


@pytest.mark.parametrize("chi", [wrong_sign, wrong_denominator, wrong_experiment])
def test_the_printed_forms_of_the_late_are_found(chi):
    report = check_orthogonality(planted(chi), wald_population())
    assert not report.passed
    assert max(report.first_order.values()) > 0.01
    assert "FAILED" in str(report)


def test_both_forms_of_the_late_agree_at_compatible_nuisances_even_wrong_ones():
    base, rng = populations.late(), np.random.default_rng(0)
    off = {name: value + rng.uniform(-0.05, 0.05, 3)[base.cell] for name, value in base.nuisances.items()}
    rows = base.observations()
    ours = LATE(min_first_stage=1e-6).loss(rows, Fitted(off, clip=0.0))
    pi, q = off["instrument_propensity"], off["treatment_z1"] - off["treatment_z0"]
    g = {
        "p": off["outcome_z1"] - off["outcome_z0"],
        "q": q,
        "pi": pi,
        "h": pi * off["outcome_z1"] + (1 - pi) * off["outcome_z0"],
        "e": pi * off["treatment_z1"] + (1 - pi) * off["treatment_z0"],
    }
    np.testing.assert_allclose(ours.target, right(rows, g), atol=1e-10)


def test_population_and_complier_targets_differ_and_each_is_recovered():
    # Two groups: effect 0 with 0.8 compliers, effect 1 with 0.2; predictions alike. 0.5 for people, 0.2 for compliers.
    cells = [(x, z, k) for x in (0, 1) for z in (0, 1) for k in ("complier", "never")]
    x, z = (np.array(column) for column in list(zip(*cells, strict=True))[:2])
    complier = np.array([kind == "complier" for *_, kind in cells])
    q, tau = np.array([0.8, 0.2]), np.array([0.0, 1.0])
    a = (complier & (z == 1)).astype(int)
    probability = 0.5 * 0.5 * np.where(complier, q[x], 1 - q[x])
    nuisances = {
        "instrument_propensity": np.full(8, 0.5),
        "outcome_z0": np.zeros(8),
        "outcome_z1": (q * tau)[x],
        "treatment_z0": np.zeros(8),
        "treatment_z1": q[x],
    }
    population = Population(x, probability, a * tau[x], a, nuisances, tau, instrument=z)
    together = np.zeros(8, dtype=int)
    for target, wanted in (("population", 0.5), ("compliers", 0.2)):
        loss = LATE(target=target).loss(population.observations(), Fitted(nuisances, clip=0.0))
        np.testing.assert_allclose(constants(loss, together, 1), wanted)


@pytest.mark.parametrize("turn", [1, -1])
def test_a_first_stage_fitted_with_the_wrong_sign_is_weak_and_not_believed(turn):
    # Two cells, q0 = 0.15 and tau = 1.5 in both; fitted q = 0.35 and -0.05. Cell 0: tau = 0.225/0.35, chi = tau + (0.225 -
    # 0.15 tau)/0.35 = 1.0102. Cell 1 is weak: tau is the average, 1.5, and so is chi. Believed, it would be -22.5.
    q0, tau = 0.15, 1.5
    x, z, a = (np.array(column) for column in zip(*itertools.product((0, 1), (0, 1), (0, 1)), strict=True))
    with_, without = (q0, 0.0) if turn == 1 else (0.0, q0)
    took = np.where(z == 1, with_, without)
    probability = 0.25 * np.where(a == 1, took, 1 - took)
    means = {"outcome_z0": np.full(8, tau * without), "outcome_z1": np.full(8, tau * with_)}
    fitted = np.array([0.35, -0.05])[x]
    stages = {"treatment_z0": np.zeros(8), "treatment_z1": fitted}
    stages = stages if turn == 1 else dict(zip(stages, reversed(stages.values()), strict=True))
    population = Population(x, probability, tau * a, a, {}, np.full(2, tau), instrument=z)
    nuisances = {"instrument_propensity": np.full(8, 0.5), **means, **stages}
    with pytest.warns(OverlapWarning, match=r"in 50\.0% of rows"):
        loss = LATE().loss(population.observations(), Fitted(nuisances, clip=0.0))
    np.testing.assert_allclose(constants(loss, x, 2), [1.0102, 1.5], atol=1e-4)


def test_a_population_must_be_one():
    with pytest.raises(OrthocalError, match="must add to 1; they add to 0.5"):
        Population(np.array([0]), np.array([0.5]), np.ones(1), np.ones(1), {}, np.ones(1))
    with pytest.raises(OrthocalError, match="`outcome` must have one value per row"):
        Population(np.array([0]), np.array([1.0]), np.ones(2), np.ones(1), {}, np.ones(1))


def test_an_own_effect_of_the_wrong_shape_is_told_so():
    short = PseudoOutcome(lambda rows: [], m=lambda rows, g: 1.0, correction=lambda rows, g: np.zeros(len(rows)))
    with pytest.raises(OrthocalError, match=r"`m` of a PseudoOutcome must return one number per row, shape \(12,\)"):
        check_orthogonality(short, populations.cate())
