import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression

from orthocal import OrthocalError, cli, datasets
from orthocal.datasets import SimulatedData
from orthocal.experiments import EXPERIMENTS, Claim, Findings, acic, new_experiment, quantiles, reproduce, retirement
from orthocal.experiments.protocol import true_calibration_error
from orthocal.experiments.quantile_findings import METHODS, QUANTILES, findings_of
from orthocal.experiments.reproduce import run_resumable
from orthocal.files.atomic import Results, alone
from orthocal.reporting.page.document import Table

FULL = Path(__file__).parents[2] / "shared" / "data" / "401k.csv"


@pytest.fixture(autouse=True)
def table_401k(monkeypatch, tmp_path):
    """The full table where it lies beside the project, else the reduced one: nothing is downloaded in tests."""
    retirement.households.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets, "HOME_401K", (tmp_path / "absent.csv").as_uri())
    if FULL.exists():
        monkeypatch.setenv(datasets.VARIABLE_401K, str(FULL))
    else:
        monkeypatch.delenv(datasets.VARIABLE_401K, raising=False)
    yield
    retirement.households.cache_clear()


@dataclass(frozen=True)
class Dice:
    """An experiment that takes no time."""

    seed: int = 0
    faults: tuple = ()
    name: ClassVar[str] = "dice"
    title: ClassVar[str] = "Dice & <chance>"
    question: ClassVar[str] = "Which number?"
    repeats: ClassVar[int] = 3

    def settings(self):
        return {"seed": self.seed}

    def keys(self, repeats):
        return [{"repeat": repeat, "kind": kind} for repeat in range(repeats) for kind in ("a", "b")]

    def run(self, key):
        if key["repeat"] in self.faults:
            raise KeyboardInterrupt
        return {"value": float(np.random.default_rng([self.seed, key["repeat"]]).random()), "whole": key["repeat"]}

    def findings(self, rows):
        table = Table("Values", ("row", "value"), tuple((row["kind"], f"{row['value']:.3f}") for row in rows))
        return Findings(
            tables=(table,),
            claims=(Claim("Values are < 1.", True, "all"), Claim("Values > 1.", False, "none")),
            blocks=(),
            notes=("x",),
            answer="Two.",
        )


def run(experiment, folder, repeats=3, jobs=1):
    return run_resumable(experiment, folder, repeats, jobs, lambda done, total: None)


def test_rows_are_written_in_order_and_read_back_to_the_last_bit(tmp_path):
    rows = run(Dice(), tmp_path)
    assert [(row["repeat"], row["kind"]) for row in rows] == [(r, k) for r in range(3) for k in "ab"]
    assert rows[2]["value"] == float(np.random.default_rng([0, 1]).random())
    assert rows[2]["whole"] == 1


@pytest.mark.parametrize("kept", [0, 1, 2, 3, 6])
@pytest.mark.parametrize("torn", ["", "1,a,0.5", "1"])
def test_an_interrupted_run_goes_on_and_ends_the_same(tmp_path, kept, torn):
    run(Dice(), tmp_path / "whole")
    whole = (tmp_path / "whole" / "results.csv").read_text()
    run(Dice(), tmp_path / "torn")
    lines = whole.splitlines(keepends=True)
    (tmp_path / "torn" / "results.csv").write_text("".join(lines[:kept]) + torn)
    run(Dice(), tmp_path / "torn")
    assert (tmp_path / "torn" / "results.csv").read_text() == whole


def test_ctrl_c_keeps_the_rows_there_are(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Dice(faults=(1,)), tmp_path)
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 3
    assert len(run(Dice(), tmp_path)) == 6


def test_more_repeats_add_rows_and_fewer_leave_the_file_alone(tmp_path):
    run(Dice(), tmp_path, repeats=2)
    run(Dice(), tmp_path, repeats=4)
    text = (tmp_path / "results.csv").read_text()
    assert len(run(Dice(), tmp_path, repeats=1)) == 2
    assert (tmp_path / "results.csv").read_text() == text
    assert len(text.splitlines()) == 9


def test_the_number_of_jobs_does_not_change_the_rows(tmp_path):
    run(Dice(), tmp_path / "one")
    run(Dice(), tmp_path / "two", jobs=2)
    assert (tmp_path / "one" / "results.csv").read_bytes() == (tmp_path / "two" / "results.csv").read_bytes()


def test_results_of_another_run_are_never_mixed(tmp_path):
    run(Dice(), tmp_path)
    with pytest.raises(OrthocalError, match="are of seed 0, not 1"):
        run(Dice(seed=1), tmp_path)
    text = (tmp_path / "results.csv").read_text()
    half = text[: text.index("\n1,a,") + 1]
    for spoilt in (
        text.replace("\n1,a,", "\n7,a,"),
        re.sub(r"\n1,a,[^,]*,", "\n1,a,,", text),
        re.sub(r"\n1,a,[^,]*,1\n", "\n1,a,0.5\n", text),
        re.sub(r"\n1,a,[^,]*,", "\n1,a,abc,", text),
    ):
        (tmp_path / "results.csv").write_text(spoilt)
        with pytest.raises(OrthocalError, match="Row 3 of .* must be that of"):
            run(Dice(), tmp_path)
    (tmp_path / "results.csv").write_text(half.replace("value,whole", "value,other"))
    with pytest.raises(OrthocalError, match="must have the columns of this experiment"):
        run(Dice(), tmp_path)
    assert (tmp_path / "results.csv").read_text() == half.replace("value,whole", "value,other")
    (tmp_path / "results.csv").write_bytes(b"\xff\n")
    with pytest.raises(OrthocalError, match="must be text"):
        run(Dice(), tmp_path)
    for wrong in ("{", "[1]"):
        (tmp_path / "run.json").write_text(wrong)
        with pytest.raises(OrthocalError, match="cannot be read"):
            run(Dice(), tmp_path)
    (tmp_path / "run.json").unlink()
    with pytest.raises(OrthocalError, match="must hold run.json"):
        run(Dice(), tmp_path)


def test_columns_in_another_order_are_kept_apart(tmp_path):
    rows = run(Dice(), tmp_path, repeats=1)
    swapped = [f"{r['repeat']},{r['kind']},{r['whole']},{r['value']!r}" for r in rows]
    (tmp_path / "results.csv").write_text("repeat,kind,whole,value\n" + "\n".join(swapped) + "\n")
    again = run(Dice(), tmp_path, repeats=2)
    assert [(row["whole"], row["value"]) for row in again[2:]] == [(1, run(Dice(), tmp_path)[2]["value"])] * 2


def test_another_version_is_another_run(tmp_path):
    run(Dice(), tmp_path)
    settings = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**settings, "scikit-learn": "0.1"}))
    with pytest.raises(OrthocalError, match="are of scikit-learn '0.1'"):
        run(Dice(), tmp_path)


def test_results_need_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OrthocalError, match="must name a folder"):
        run(Dice(), tmp_path / "file")


def test_one_run_at_a_time(tmp_path):
    with alone(tmp_path), pytest.raises(OrthocalError, match="Another run is writing"):
        run(Dice(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_page_is_not_written_over_another(tmp_path):
    """A page of the user's is refused before work begins, an edited one too; results of other commands are kept apart."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "page.html").write_text("mine")
    with pytest.raises(OrthocalError, match="page.html was not written by this command"):
        reproduce(Dice(), tmp_path / "mine", 1)
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["page.html"]
    reproduce(Dice(), tmp_path / "out", 1)
    (tmp_path / "out" / "claims.json").write_text("edited")
    with pytest.raises(OrthocalError, match="claims.json was changed after it was written"):
        reproduce(Dice(), tmp_path / "out", 2)
    with pytest.raises(OrthocalError, match="holds the results of `reproduce`"):
        Results(tmp_path / "out", "calibrate", ("report.html",)).require_free()
    run(Dice(), tmp_path / "stopped")  # rows, but no page yet
    with pytest.raises(OrthocalError, match="holds the results of `reproduce`"):
        Results(tmp_path / "stopped", "calibrate", ("report.html",)).require_free()


def test_the_page_holds_claims_and_figures_escaped(tmp_path):
    found = reproduce(Dice(), tmp_path, 2)
    page = (tmp_path / "page.html").read_text()
    assert '<h1 dir="auto">Dice &amp; &lt;chance&gt;</h1>' in page
    assert "1 of 2 claims held" in page
    assert "<p>Which number?</p><p>Two.</p>" in page
    assert '<span class="mark bad">not held</span> Values &gt; 1. Measured: none.' in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert json.loads((tmp_path / "claims.json").read_text())[1] == {
        "claim": "Values > 1.",
        "held": False,
        "measured": "none",
    }
    assert found.tables[0].as_text().splitlines()[0] == "row  value"


def test_quartile_error_by_hand():
    # Calibration rows 1..8: edges 2, 4, 6. Test rows 2 | 3 | - | 7, 9 : gaps 1, -1, none, mean(3, 0) = 1.5.
    error = retirement.quartile_error(
        np.arange(8.0, 0.0, -1.0), np.array([2.0, 3.0, 7.0, 9.0]), np.array([3.0, 2.0, 10.0, 9.0])
    )
    assert error == pytest.approx((1 + 1 + 2.25) / 3)


def test_true_calibration_error_takes_the_noise_off():
    rng = np.random.default_rng(0)
    prediction, noise = rng.standard_normal(40_000), rng.standard_normal(40_000)
    assert true_calibration_error(prediction, 0.5 + noise, 40) == pytest.approx(0.5, abs=0.02)
    assert true_calibration_error(prediction, 0.3 * prediction + noise, 40) == pytest.approx(0.3, abs=0.02)
    assert true_calibration_error(prediction, noise, 40) < 0.02


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_expected_loss_is_the_integral(quantile):
    def pinball(y):
        return (y - 0.3) * (quantile - (y <= 0.3)) * norm.pdf(y, 1.1)

    integral = quad(pinball, -9, 0.3)[0] + quad(pinball, 0.3, 11)[0]
    assert quantiles.expected_loss(np.array([0.3]), np.array([1.1]), quantile) == pytest.approx(integral, abs=1e-9)


def test_the_design_is_the_papers():
    rng = np.random.default_rng(0)
    slope = np.r_[np.ones(20), np.zeros(80)]
    sample = quantiles.draw_design(20_000, slope, slope, rng)
    assert np.std(sample.mean) == pytest.approx(np.sqrt(20), rel=0.03)
    assert np.std(sample.y - sample.mean) == pytest.approx(1, rel=0.03)
    low = sample.mean > 6  # minus the index is in the exponent: treatment is rare where it is large
    assert sample.treatment[low].mean() == pytest.approx(0.05, abs=0.02)


def command(folder, *extra):
    code = "import sys; from orthocal.cli import main; main(sys.argv[1:])"
    arguments = [
        "reproduce",
        "401k",
        "--repeats",
        "5",
        "--learners",
        "shallow",
        "--out",
        str(folder),
        *(extra if "--jobs" in extra else ("--jobs", "1", *extra)),
    ]
    return [sys.executable, "-c", code, *arguments]


def ended(group, patience=30):
    """Whether every process of a group ends in time."""
    for _ in range(10 * patience):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_killed_halfway_the_same_command_ends_the_same(tmp_path, jobs):
    subprocess.run(command(tmp_path / "whole"), check=True, capture_output=True)
    whole = (tmp_path / "whole" / "results.csv").read_bytes()
    out = tmp_path / "killed"
    running = subprocess.Popen(
        command(out, "--jobs", jobs), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while not (out / "results.csv").exists() or (out / "results.csv").read_bytes().count(b"\n") < 3:
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    killed = (out / "results.csv").read_bytes()
    assert whole.startswith(killed)
    assert len(killed) < len(whole)
    assert ended(running.pid)  # no orphan computes on
    subprocess.run(command(out, "--jobs", jobs), check=True, capture_output=True)
    assert (out / "results.csv").read_bytes() == whole
    assert (out / "claims.json").read_bytes() == (tmp_path / "whole" / "claims.json").read_bytes()


def reproduced(name, folder, *extra):
    with pytest.raises(SystemExit) as stop:
        cli.main(["reproduce", name, "--jobs", "1", "--out", str(folder), *extra])
    assert stop.value.code == 0
    with (folder / "results.csv").open() as file:
        return list(csv.DictReader(file))


def test_401k_reduced(tmp_path, capsys):
    rows = reproduced("401k", tmp_path, "--repeats", "2")
    printed = capsys.readouterr().out
    assert [(row["split"], row["learners"]) for row in rows] == [(s, k) for s in "01" for k in ("large", "shallow")]
    for row in rows:
        assert float(row["cate_linear_lower"]) <= float(row["cate_linear_error"]) <= float(row["cate_linear_upper"])
    large = np.array([float(row["cate_base_quartile"]) for row in rows[::2]])
    shallow = np.array([float(row["cate_base_quartile"]) for row in rows[1::2]])
    assert large.mean() > shallow.mean()  # overfitted trees are worse calibrated
    assert printed.count("HELD") == 12
    held = [claim["held"] for claim in json.loads((tmp_path / "claims.json").read_text())]
    assert printed.count("NOT HELD") == held.count(False)
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 1
    for said in (page, printed):
        assert "401k.csv, the full table" in said if FULL.exists() else "reduced table" in said


def test_quantile_reduced(tmp_path, capsys):
    rows = reproduced("quantile", tmp_path, "--repeats", "2")
    assert len(rows) == 12
    base = np.array([float(row["q0.5_base_error"]) for row in rows])
    calibrated = np.array([float(row["q0.5_linear_error"]) for row in rows])
    assert calibrated.mean() < 0.6 * base.mean()
    assert float(rows[5]["q0.5_double_loss"]) < float(rows[0]["q0.5_double_loss"])  # more rows, less loss
    assert capsys.readouterr().out.count("HELD") == 4


def test_one_repetition_is_no_interval():
    rng = np.random.default_rng(0)
    rows = [
        {f"q{q}_{m}_{figure}": rng.random() for q in QUANTILES for m in METHODS for figure in ("error", "loss")}
        | {"repeat": repeat, "learners": "default", "n": n}
        for repeat in range(2)
        for n in (500, 1000)
    ]
    one, two = (findings_of(part, ("default",)) for part in (rows[:2], rows))
    assert one.claims[0].held is None
    assert "±" not in one.tables[0].as_text()
    assert two.claims[0].held is False
    assert "±" in two.tables[0].as_text()


def test_acic_reduced(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(acic, "ACIC_DRAWS", (1, 2))
    rows = reproduced("acic", tmp_path, "--repeats", "1", "--learners", "default")
    assert [row["draw"] for row in rows] == ["1", "2"]
    assert float(rows[0]["T_base_mse"]) >= float(rows[0]["T_base_error"]) ** 2
    assert capsys.readouterr().out.count("HELD") == 10


def harm(*ratios_by_draw):
    """The two claims about harm, of an S-learner whose errors change by these ratios; the others' errors halve."""
    rows = [
        {"draw": draw, "learners": "default", "outcome_deviation": 2.0}
        | {f"{model}_{method}_{of}": 1.0 for model in acic.MODELS for method in acic.METHODS for of in acic.FIGURES}
        | {f"{model}_base_{of}": 2.0 for model in acic.MODELS for of in acic.FIGURES}
        | {"S_auto_mse": 2 * ratio}
        for draw, ratios in enumerate(ratios_by_draw, 1)
        for ratio in ratios
    ]
    return acic.Challenge(sizes=("default",)).findings(rows).claims[-2:]


def test_acic_counts_the_draws_that_rise_and_names_the_worst():
    often, much = harm(*[(0.9, 0.9)] * 8, (1.0, 1.08), (0.9, 0.9))
    assert (often.held, much.held) == (True, False)
    assert "S 1 of 10" in often.measured
    assert "S at most 1.040 (0.040), in draw 9" in much.measured  # a deviation of .057 over the root of 2
    often, much = harm(*[(0.9,)] * 8, (1.01,), (1.03,))
    assert (often.held, much.held) == (False, True)
    assert "S at most 1.030, in draw 10" in much.measured


class Told(LinearRegression):
    """Predicts the share of the rows it is asked about that it was fitted on, and keeps how many those were."""

    sizes: ClassVar[list[int]] = []

    def fit(self, X, y):
        self.seen_ = set(X[:, 0])
        self.sizes.append(len(X))
        return super().fit(X, y)

    def predict(self, X):
        return np.array([float(row in self.seen_) for row in X[:, 0]])


def test_acic_nuisances_learn_from_training_rows_and_other_folds_only(monkeypatch):
    """50 rows to calibrate on, 30 others, half of each treated: 20 + 15 rows teach each outcome, none of them its own."""
    monkeypatch.setattr(Told, "sizes", [])
    learners = {"outcome": Told(), "propensity": LogisticRegression()}
    X, treatment = np.arange(80.0)[:, None], np.arange(80) % 2
    data = SimulatedData(X, np.ones(80) + X[:, 0] / 80, treatment, np.zeros(80), {})
    judged, fitted = acic.cross_fitted(data, np.arange(50), np.arange(50, 80), 0, learners)
    assert set(Told.sizes) == {35}
    assert len(judged) == len(fitted["propensity"]) == 50
    assert (fitted["outcome_control"] == 0).all()
    assert (fitted["outcome_treated"] == 0).all()


def test_f_equal_to_q_is_the_uncorrected_loss():
    """The uncorrected loss of the quantile experiment is the corrected one with f = Q (mathematics 3.10)."""
    from orthocal.effects.quantile import corrected_tilt

    slope, weight = np.array([0.0, 2.0]), np.ones(2)
    np.testing.assert_allclose(corrected_tilt(0.75, slope, weight, np.full(2, 0.75)), 0.75 * slope)


def test_bad_input_gets_one_line(tmp_path, capsys):
    cases = {
        "`experiment` must be": ["reproduce", "nothing"],
        "`--learners` must be": ["reproduce", "401k", "--learners", "huge"],
        "`--repeats` must be": ["reproduce", "401k", "--repeats", "0"],
        "`--seed` must not": ["reproduce", "401k", "--seed", "-1"],
        "`--jobs` must be": ["reproduce", "401k", "--jobs", "0"],
    }
    for message, arguments in cases.items():
        with pytest.raises(SystemExit) as stop:
            cli.main([*arguments, "--out", str(tmp_path / "out")])
        assert stop.value.code == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_registry_names_each_experiment():
    assert set(EXPERIMENTS) == {"401k", "quantile", "acic"}
    assert new_experiment("401k", 3, "shallow").settings()["learners"] == ["shallow"]


def test_401k_is_found_checked_and_fetched(monkeypatch, tmp_path):
    small = tmp_path / "401k.csv"
    header = [*datasets.COVARIATES_401K, "net_tfa", "p401", "e401"]
    small.write_text(
        ",".join(header) + "\n" + ",".join(map(str, range(14))) + ",5.5,0,1\n" + ",".join(["1"] * 17) + "\n"
    )
    monkeypatch.setenv(datasets.VARIABLE_401K, str(small))
    with pytest.raises(OrthocalError, match="its sha256 is"):
        datasets.load_401k()
    with pytest.raises(OrthocalError, match="no file is there"):
        datasets.load_401k(tmp_path / "nowhere.csv")
    monkeypatch.delenv(datasets.VARIABLE_401K)
    with pytest.raises(OrthocalError, match="must be downloaded once"):
        datasets.load_401k()
    monkeypatch.setattr(datasets, "HOME_401K", small.as_uri())
    with pytest.raises(OrthocalError, match="what came is another file"):
        datasets.load_401k()
    assert not (tmp_path / "cache").exists()
    import hashlib

    monkeypatch.setattr(datasets, "SHA256_401K", hashlib.sha256(small.read_bytes()).hexdigest())
    data = datasets.load_401k()
    assert data.X.shape == (2, 14)
    assert (data.y[0], data.treatment[0], data.instrument[0]) == (5.5, 0, 1)
    small.unlink()
    assert datasets.load_401k().y[0] == 5.5  # from the cache


def test_the_reduced_table_serves_when_the_full_one_cannot_be_had(monkeypatch):
    monkeypatch.delenv(datasets.VARIABLE_401K, raising=False)
    experiment = new_experiment("401k")
    assert experiment.table == "reduced"
    assert "reduced" in experiment.settings()["data"]
    monkeypatch.setattr(datasets, "HOME_401K", "elsewhere, and there again")
    data = retirement.households(experiment.table)  # what was decided once holds for every worker
    assert len(data.y) == 9275
    assert np.mean(data.y) > 1000  # dollars, as in the full table


@pytest.mark.skipif(not FULL.exists(), reason="the full table is not beside the project")
def test_the_full_table():
    data = datasets.load_401k(FULL)
    assert data.X.shape == (9915, 14)
    assert data.instrument.mean() == pytest.approx(0.371357, abs=1e-6)
    assert data.y.mean() == pytest.approx(18_051.53, abs=0.01)
    assert (data.treatment <= data.instrument).all()
