"""What counts as good: a finite result or a good sentence, no leaked warning, and inputs as they were."""

import re
import signal
import threading
import traceback
import warnings
from collections.abc import Mapping

import numpy as np
import pandas as pd

from orthocal import OrthocalError

LONGEST = 300
"""Characters of a sentence."""
SECONDS = 30
"""Of processor time, after which a case hangs; the clock of the wall runs on where the process is paused, or others are busy."""
PATIENCE = 900
"""Seconds of the clock, after which a case waits for something that never comes."""


class Hangs(BaseException):
    """A case takes too long."""


def sentence_problem(text):
    """Return what is wrong with a sentence, if anything: it names something, says what is wrong, and is not long."""
    if (
        len(re.sub(r"covariates=\[.*\]", "covariates=[]", text)) > LONGEST
    ):  # without the list that is there to be pasted
        return f"a sentence of {len(text)} characters: {text}"
    if "\n" in text:
        return f"more than one line: {text!r}"
    if not re.search(r"[.?]$", text):
        return f"no sentence: {text!r}"
    if not re.search(r"`|'|\bmust\b|\d|data file|map file|--\w", text):
        return f"it names nothing: {text!r}"
    return None


def not_finite(value, path="result"):
    """Return where a result holds a number that is not finite, or None."""
    if isinstance(value, float | np.floating):
        return None if np.isfinite(value) else f"{path} is {value}"
    if isinstance(value, np.ndarray):
        return None if value.dtype.kind != "f" or np.isfinite(value).all() else f"{path} is not finite"
    if isinstance(value, Mapping):
        return next((bad for key, one in value.items() if (bad := not_finite(one, f"{path}[{key!r}]"))), None)
    if isinstance(value, list | tuple):
        return next((bad for k, one in enumerate(value) if (bad := not_finite(one, f"{path}[{k}]"))), None)
    return None


def fingerprints(values):
    """Return the fingerprint of each value; what other libraries warn of while they show one is not the library's doing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [fingerprint(one) for one in values]


def fingerprint(value):
    """Return something that changes when a value is modified."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, _shown(value.tolist()) if value.dtype.kind == "O" else value.tobytes()
    if isinstance(value, Mapping):
        return tuple((_shown(key), fingerprint(one)) for key, one in value.items())
    if isinstance(value, pd.DataFrame):  # pandas shows the middle of a table by dots, and takes its time
        columns = [value.iloc[:, k] for k in range(value.shape[1])]
        return _shown(list(value.columns)), _shown(value.index), *(fingerprint(one) for one in columns)
    if isinstance(value, pd.Series):
        return str(value.dtype), fingerprint(value.to_numpy())
    if isinstance(value, str | int | float | list | tuple | set) or hasattr(value, "columns"):
        return _shown(value)
    return None


def _shown(value):
    try:
        return repr(value)
    except (TypeError, ValueError):  # of thousands of digits, or of lists of objects in pandas
        return None


def judged(call, inputs=(), *, finite=lambda result: None):
    """Return what is wrong with a call, or None: its result, sentence, warnings, and what it did to its inputs."""
    before = fingerprints(inputs)
    problem = None
    with warnings.catch_warnings(record=True) as said, Bounded():
        warnings.simplefilter("always")
        try:
            problem = finite(call())
        except OrthocalError as error:
            problem = sentence_problem(str(error))
        except Hangs:
            problem = f"it takes more than {SECONDS} seconds"
        except Exception as error:  # noqa: BLE001
            problem = described(error)
    problem = problem or leaks(said)
    if problem is None and before != fingerprints(inputs):
        problem = "an input was modified"
    return problem


def leaks(said):
    """Return the first warning that is not the library's own, or None; what it says of old names it says as a FutureWarning."""
    for one in said:
        is_own = one.category.__module__.startswith(
            "orthocal."
        ) or "the old name will be removed in the next release" in str(one.message)
        if not is_own:
            return f"{one.category.__name__} leaks: {one.message} at {one.filename}:{one.lineno}"
    return None


def described(error):
    """Return the kind of an error, and where it comes from."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/orthocal/" in frame.filename]
    where = f" at {frames[-1].filename.rpartition('/orthocal/')[2]}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {str(error)[:200]}{where}"


class Bounded:
    """Have work that hangs raise, where signals can be had."""

    def __enter__(self):
        self.active = threading.current_thread() is threading.main_thread()
        if self.active:
            self.old = {number: signal.signal(number, self.stop) for number in (signal.SIGPROF, signal.SIGALRM)}
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(PATIENCE)

    def stop(self, *_):
        raise Hangs

    def __exit__(self, *_):
        if self.active:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            for number, handler in self.old.items():
                signal.signal(number, handler)
