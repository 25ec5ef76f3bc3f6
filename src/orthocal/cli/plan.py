"""From words on the command line to a study, and from a study to words on what will be done."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from orthocal.cli.options import EFFECT, ENGINE, Options
from orthocal.effects import EFFECTS
from orthocal.effects.description import words_of
from orthocal.errors import OrthocalError, require_one_of, warn_of_old_name
from orthocal.formats import listed, number, shown
from orthocal.nuisances import Nuisance
from orthocal.nuisances.learners import choose_learners
from orthocal.nuisances.wrapped import bare
from orthocal.study import Study
from orthocal.study.calibrating import contrast_of

if TYPE_CHECKING:
    from pyarrow import DataType

LEVEL = 0.95
OLD_LEVEL: dict[str, tuple[str, Callable[[float], float]]] = {
    "cvar": ("tail", lambda level: 1 - level),
    "expectile": ("expectile", lambda level: level),
}
"""What --level once said of these effects, for one more release."""
ALONE: dict[str, Any] = {"all": "all", "none": []}
"""What stands for covariates without naming any."""
PROBED = 2000
"""Rows on which a fit is timed; fewer rows take too little time to speak of."""


def study_of(options: Options, data: Any, kind: DataType) -> Study:
    """Return the study that was asked for; `kind` is the type of the treatment column."""
    engine = options.of(ENGINE)
    known = {}
    if options.propensity_control is not None:
        known["propensity_control"] = number_or_name(options.propensity_control)
    covariates = None if options.covariates is None else split_names(options.covariates)
    return Study(
        data,
        outcome=options.outcome,
        treatment=options.treatment,
        covariates=ALONE.get(options.covariates or "", covariates),
        exclude=excluded(options),
        **(arms_of(options, kind) or {"predictions": options.predicted, "effect": effect_of(options, kind)}),
        event=options.event,
        instrument=options.instrument,
        propensity=known_propensity(options, kind),
        weight=options.weight,
        groups=options.groups,
        key=options.key,
        nuisances=known or None,
        learners=options.learner,
        tolerance=options.tolerance,
        level=LEVEL if options.level is None or is_old_level(options) else options.level,
        folds=whole_or_name(options.folds),
        clip=options.clip,
        random_state=options.seed,
        n_jobs=options.jobs,
        sample=engine.get("sample"),
        exact=bool(engine.get("exact")),
    )


def arms_of(options: Options, kind: DataType) -> dict[str, Any]:
    """Return what a study must know of several arms; nothing where there is one."""
    columns = {arm_of(text, kind): column for text, column in options.columns_by_arm.items()}
    if not columns:
        return {}
    if len(columns) < len(options.arm or ()):
        raise OrthocalError(
            "`--arm` must be given with a column for every arm, as in --arm call=tau_call --arm mail=tau_mail, each arm once."
        )
    if options.prediction:
        raise OrthocalError(
            f"`--prediction` must be left out where arms name their columns; it is {listed(options.prediction)}."
        )
    given = {name: value for name, value in options.of(EFFECT).items() if name not in ("arm", "control")}
    for name in given:
        raise OrthocalError(f"`--{name}` must be left out with several arms, whose effect is cate.")
    control = None if options.control is None else arm_of(options.control, kind)
    return {"arms": list(columns), "control": control, "predictions": columns, "effect": options.effect}


def known_propensity(options: Options, kind: DataType) -> Any:
    """Return a known propensity: a number, a column, or one of these for each of several arms."""
    text = options.propensity
    if text is None or not (options.columns_by_arm and "=" in text):
        return None if text is None else number_or_name(text)
    pairs = [one.partition("=") for one in split_names(text)]
    return {arm_of(arm, kind): number_or_name(value) for arm, _, value in pairs}


def excluded(options: Options) -> list[str] | None:
    """Return the columns that are no covariates: those that were named, and the one that says which rows are held out."""
    named = [] if options.exclude is None else split_names(options.exclude)
    if options.covariates == "all" or named:
        parts = (getattr(options, "holdout", "0"), getattr(options, "spend", None) or "0")
        named += [text for text in parts if isinstance(number_or_name(text), str)]
    return named or None


def words_of_study(study: Study, options: Options, data: str) -> dict[str, str]:
    """Say what the data are and which column plays which part."""
    effect: Any = study.estimand
    optional = {
        "event": options.event,
        "instrument": options.instrument,
        "weight": options.weight,
        "clusters": options.groups,
        "subgroups": options.by,
        "key": options.key,
        "cost": None if options.cost is None else f"{cost_in_words(options.cost)} for treating one person",
        "tolerance": None if options.tolerance is None else number(options.tolerance),
    }
    contrast = contrast_of(study)
    return {
        "data": data,
        "effect": f"{effect!r}: {words_of(effect).estimand}",
        **({} if contrast is None else {"contrast": contrast}),
        "outcome": options.outcome,
        "treatment": options.treatment,
        "prediction": ", ".join(options.predicted),
        **{role: name for role, name in optional.items() if name is not None},
        "covariates": _listed(study.roles.covariates),
    }


def cost_in_words(cost: Any) -> str:
    """Return a number, or what was written of several arms."""
    return number(cost) if isinstance(cost, float) else ", ".join(cost)


def words_of_learning(study: Study, options: Options, draws: int) -> dict[str, str]:
    """Say what learns which nuisance, and how."""
    learnt, given = study.rows.engine.to_learn
    folds = options.folds if whole_or_name(options.folds) != options.folds else f"those of column {options.folds}"
    count = len(learnt) * (study.folds if isinstance(study.folds, int) else 1) * draws
    often = "once" if draws == 1 else f"{draws} times"
    fits = f", drawn {often}: {count} learner fits" if isinstance(study.folds, int) else ""
    return {
        "learners": _learners(learnt, given, options.learner),
        "folds": f"{folds}{fits}",
        "clip": f"fitted propensities are clipped to [{options.clip:g}, {1 - options.clip:g}]",
        "seed": str(options.seed),
    }


def words_of_map(method: str, sides: tuple[int, int], holdout: Any) -> dict[str, str]:
    """Say how the map will be fitted and judged."""
    held = isinstance(holdout, str) or holdout > 0
    verdict = f"on {sides[1]:,} rows the map never sees" if held else "none: no rows are held out"
    return {"method": method, "map": f"fitted on {sides[0]:,} rows", "verdict": verdict}


def time_of(study: Study, draws: int) -> str:
    """Return about how long learning will take, from the time of one fit on a few rows."""
    from joblib import effective_n_jobs

    engine: Any = study.rows.engine
    learnt, _ = engine.to_learn
    n, folds = len(engine), study.folds if isinstance(study.folds, int) else 5
    if not learnt or n <= PROBED * 10:
        return "seconds"
    seconds = max(_seconds_of_fit(study, nuisance) for nuisance in learnt)
    total = seconds * n * (1 - 1 / folds) / PROBED * len(learnt) * folds * draws / effective_n_jobs(study.n_jobs)
    return f"about {total:.0f} seconds" if total < 100 else f"about {total / 60:.0f} minutes"


def _seconds_of_fit(study: Study, nuisance: Nuisance) -> float:
    from dataclasses import replace

    import numpy as np

    from orthocal.nuisances.cross_fit import fit_one

    engine: Any = study.rows.engine
    some = np.arange(PROBED)
    few = replace(
        nuisance,
        target=nuisance.target[some],
        rows=None,
        features=None if nuisance.features is None else nuisance.features[some],
    )
    learner = choose_learners([few], study.learners if isinstance(study.learners, str) else None)[few.name]
    start = time.perf_counter()
    fit_one(learner, few, engine.observations.covariates[some], np.zeros(PROBED, dtype=int), 1, None, 0)
    return time.perf_counter() - start


def _learners(learnt: Sequence[Nuisance], given: Sequence[str], kind: str | None) -> str:
    names: dict[str, list[str]] = {}
    for nuisance, learner in choose_learners(learnt, kind).items():
        last = learner[-1] if hasattr(learner, "steps") else learner
        names.setdefault(type(bare(last)).__name__, []).append(nuisance)
    parts = [f"{learner} for {', '.join(wanted)}" for learner, wanted in names.items()]
    return "; ".join([*parts, *([f"known: {', '.join(given)}"] if given else [])]) or "none"


def _listed(names: Sequence[str]) -> str:
    return f"{len(names):,}: {', '.join(names)}" if names else "none; covariates would narrow the intervals"


def split_names(text: str) -> list[str]:
    """Return comma-separated names, with or without spaces."""
    return [name.strip() for name in text.split(",")]


def number_or_name(text: str) -> float | str:
    """Return a number, which may be a fraction such as 1/3, or the column that is named."""
    for read in (float, lambda words: float(Fraction(words))):
        try:
            return read(text)
        except (ValueError, ZeroDivisionError):
            continue
    return text


def whole_or_name(text: str) -> int | str:
    """Return a whole number or, where the text is none, the column that is named."""
    try:
        return int(text)
    except ValueError:
        return text


def is_old_level(options: Options) -> bool:
    """Return whether --level says which tail or expectile is meant, as it once did."""
    if options.level is None or options.effect not in OLD_LEVEL:
        return False
    return getattr(options, OLD_LEVEL[options.effect][0]) is None


def effect_of(options: Options, kind: DataType) -> Any:
    """Return the effect with the settings that were given; one it does not use is an error."""
    require_one_of(options.effect, EFFECTS, "effect")
    known = [one.name for one in fields(EFFECTS[options.effect])]
    given = options.of(EFFECT)
    if is_old_level(options):
        name, turned = OLD_LEVEL[options.effect]
        value = round(turned(options.level or 0.0), 12)
        warn_of_old_name(f"--level {options.level:g} of the effect {options.effect}", f"--{name} {value:g}")
        given = {name: value} | given
    for name in given:
        if name not in known:
            raise OrthocalError(
                f"`--{name}` must belong to the effect; {shown(options.effect)} has {', '.join(known) or 'no settings'}."
            )
    if "arm" in given:
        given["arm"] = one_of(given["arm"], "arm")
    arms = {name: arm_of(given[name], kind) for name in ("arm", "control") if name in given}
    return EFFECTS[options.effect](**given | arms)


def only(options: Options) -> str | None:
    """Return the one prediction column; None where each arm has its own."""
    return None if options.columns_by_arm else one_of(options.prediction or (), "prediction")


def one_of(names: Sequence[str], option: str) -> str:
    """Return the one name that was given; a repeated option is an error, not a silent choice."""
    if len(names) != 1:
        raise OrthocalError(f"`--{option}` must be given once here; it was given {len(names)} times.")
    return names[0]


def arm_of(text: str, kind: DataType) -> Any:
    """Return a value of the treatment as the type of its column."""
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    reads: dict[bool, Callable[[str], Any]] = {True: int, False: float}
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        try:
            return reads[pa.types.is_integer(kind)](text)
        except ValueError:
            return text
    return text
