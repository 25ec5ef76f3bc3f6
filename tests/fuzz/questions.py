"""What is asked of a study, wherever its rows are: an answer that can be shown, written down and used."""

ASKED = {
    "assess": ("prediction", "bins", "cost", "by", "draws", "redraws"),
    "calibrate": (
        "prediction",
        "method",
        "holdout",
        "bins",
        "cost",
        "by",
        "draws",
        "redraws",
        "within",
        "decisions",
        "new",
    ),
    "compare": ("prediction", "rival", "cost"),
    "policy": ("prediction", "cost", "budget", "spend", "method", "holdout", "draws"),
    "choose": ("prediction", "cost", "method", "holdout", "bins", "draws"),
    "audit": ("prediction", "within", "discover", "bins", "smallest", "draws"),
    "sensitivity": ("prediction", "strengths", "benchmarks", "bins", "cost"),
    "checks": (),
    "repr": (),
}
"""The arguments of each question; `rival` is the other prediction that is compared, `new` what a map is asked for."""
USUAL = {
    "assess": {"draws": 20},
    "calibrate": {"draws": 20, "method": "linear"},
    "policy": {"draws": 20, "method": "linear"},
    "choose": {"draws": 20, "method": "linear"},
    "audit": {"draws": 50, "within": ["x"], "smallest": 5},
}


def answered(study, question, asked):
    """Ask a study; return what it says, in numbers."""
    own = {
        name: asked[name] for name in ASKED[question] if name in asked and name not in ("prediction", "rival", "new")
    }
    return QUESTIONS[question](study, asked, {**USUAL.get(question, {}), **own})


def _each(found):
    return list(found.values()) if isinstance(found, dict) else [found]


def _assess(study, asked, own):
    return [(one.to_dict(), one.summary()) for one in _each(study.assess(asked["prediction"], **own))]


def _calibrate(study, asked, own):
    return [_shown(one, asked) for one in _each(study.calibrate(asked["prediction"], **own))]


def _shown(done, asked):
    """A calibration, its table and its band, and both on new predictions where those are asked for."""
    done.table()
    band = getattr(done, "band_or_none", None)
    if "new" in asked:
        done.map.predict(asked["new"])
        done.band.interval(asked["new"])
    return done.to_dict(), done.summary(), repr(band and band.to_dict())


def _compare(study, asked, own):
    return study.compare(asked["prediction"], asked["rival"], **own).to_dict()


def _policy(study, asked, own):
    found = study.policy(asked["prediction"], **own)
    return found.to_dict(), found.summary()


def _choose(study, asked, own):
    found = study.choose(asked["prediction"], **own)
    return found.to_dict(), found.summary()


def _audit(study, asked, own):
    return [(one.to_dict(), str(one)) for one in _each(study.audit(asked["prediction"], **own))]


def _sensitivity(study, asked, own):
    return [(one.to_dict(), one.summary()) for one in _each(study.sensitivity(asked["prediction"], **own))]


QUESTIONS = {
    "assess": _assess,
    "calibrate": _calibrate,
    "compare": _compare,
    "policy": _policy,
    "choose": _choose,
    "audit": _audit,
    "sensitivity": _sensitivity,
    "checks": lambda study, asked, own: repr(study.checks()),
    "repr": lambda study, asked, own: repr(study),
}
