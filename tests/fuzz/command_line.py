"""The command line, in this process: exit code, one line of a sentence, no traceback, and nothing of the user's lost."""

import contextlib
import io
import os
import tempfile
import warnings
from pathlib import Path
from unittest import mock

import typer

from orthocal import cli
from orthocal.cli.parsing import option_names
from tests.fuzz.hostile import NAMES
from tests.fuzz.judgement import Bounded, Hangs, leaks, sentence_problem
from tests.fuzz.user_files import TABLE, files_of, write

NAME = "command line"
STUDY = {
    "--outcome": "y",
    "--treatment": "a",
    "--prediction": "tau",
    "--propensity": "0.5",
    "--covariates": "none",
    "--jobs": "1",
    "--folds": "2",
    "--out": "out",
}
LINEAR = {**STUDY, "--method": "linear"}
COMMANDS = {
    "assess": (("data.csv",), STUDY),
    "calibrate": (("data.csv",), LINEAR),
    "audit": (("data.csv",), {**STUDY, "--within": "x"}),
    "choose": (("data.csv",), LINEAR),
    "policy": (("data.csv",), {**LINEAR, "--cost": "0.1"}),
    "apply": (("map.json", "data.csv"), {"--prediction": "tau", "--out": "new.csv"}),
    "export": (("map.json",), {"--format": "sql"}),
}
LIKELY = [0.15, 0.22, 0.1, 0.07, 0.08, 0.22, 0.16]
SCENES = {
    "one contrast": {},
    "learnt": {"--propensity": None, "--covariates": "x,town", "--learner": "linear"},
    "survival": {
        "--outcome": "time",
        "--event": "died",
        "--effect": "survival",
        "--time": "0.5",
        "--learner": "linear",
    },
    "several arms": {
        "--treatment": "segment",
        "--control": "none",
        "--prediction": None,
        "--arm": ("call=tau", "mail=other"),
        "--propensity": "none=0.5,call=0.25,mail=0.25",
        "--learner": "linear",
    },
    "chunks": {"--engine": "local", "--key": "x"},
}
"""What kind of study it is; None leaves an option out."""
KNOWN = {home.rpartition(":")[2]: option_names(options) for home, (options, _) in cli.COMMANDS.items()}
FLAGS = [
    "--dry-run",
    "--json",
    "--overwrite",
    "--interval",
    "--drop-missing",
    "--decisions",
    "--exact",
    "--discover",
    "--sensitivity",
    "--help",
    "--version",
    "--debug",
]
OPTIONS = {command: sorted({*names, "--no-such-option"} - {*FLAGS}) for command, names in KNOWN.items()}
"""All that a command takes, as the records of its options say, so that a new option is attacked too."""
VALUES = [
    *("nan", "inf", "-inf", "1e400", "-1", "0", "1", "2", "0.5", "1/3", "1/0", "99999999999999999999", "0x10", "1_0"),
    *(
        *TABLE.column_names,
        "call",
        "mail",
        "Bern",
        "",
        " ",
        ",",
        "x,x",
        "x,town",
        "x:town",
        "town:g,x",
        ":",
        "all",
        "none",
    ),
    *("x" * 3000, "é", "\udce9", "data.csv", "folder", "map.json", "earlier.json", "no/such/place", "."),
    *("linear", "isotonic", "histogram", "spline", "platt", "constant", "separate", "common", "shift", "boosting"),
    *("late", "quantile", "relative", "overlap", "catt", "cvar", "expectile", "rmst", "survival", "derivative"),
    *("compliers", "riesz", "sql", "python", "json", "mysql", "miscalibrated", "inconclusive", "latin-1", "utf-16"),
    *("1=tau", "1=tau,0=other", "call=tau", "call=0.5", "local", "memory", "dask2", "tcp://"),
    *NAMES,
]
DATA = [
    *("data.parquet", "data.csv.gz", "parts", "parts/*.csv", "empty.csv", "header.csv", "broken.parquet", "folder"),
    *("missing.csv", "data.txt", "-", "wide.csv", "narrow.csv", "gaps.csv", "broken.json", "", "*.csv", "["),
]
MAP_FILES = ["banded.json", "within.json", "joint.json", "broken.json", "earlier.json", "data.csv", "folder", "", "-"]


APP = typer.main.get_command(cli.app)
"""Made once: typer makes it for each call, which takes longer than most cases."""


def mutations(rng):
    """Return a command, a kind of study, and options, values, flags, names and files that are hostile."""
    command = str(rng.choice(list(COMMANDS), p=LIKELY))
    found = [("command", command)]
    if command not in ("apply", "export"):
        found.append(("scene", str(rng.choice(list(SCENES), p=[0.5, 0.15, 0.1, 0.15, 0.1]))))
        if rng.random() < 0.93:
            found.append(("flag", "--dry-run"))  # all checks, no pictures
    for _ in range(rng.integers(1, 4)):
        kind = rng.random()
        if kind < 0.55:
            found.append((str(rng.choice(OPTIONS[command])), str(rng.choice(VALUES))))
        elif kind < 0.7:
            at = int(rng.integers(len(COMMANDS[command][0])))
            names = MAP_FILES if command in ("apply", "export") and at == 0 else DATA
            found.append(("file", str(rng.choice(names)), at))
        elif kind < 0.8:
            found.append(("flag", str(rng.choice(FLAGS))))
        elif kind < 0.9:
            found.append(("rename", str(rng.choice(TABLE.column_names)), str(rng.choice(NAMES))))
        else:
            found.append(("twice", str(rng.choice(OPTIONS[command])), str(rng.choice(VALUES))))
    return found


def words_of(mutations):
    """Return the words on the command line, and the names of columns that are others."""
    settled = dict(one for one in mutations if len(one) == 2)
    command, scene = settled.get("command", "assess"), SCENES[settled.get("scene", "one contrast")]
    files, options = list(COMMANDS[command][0]), dict(COMMANDS[command][1])
    options |= {name: value for name, value in scene.items() if name in KNOWN[command]}
    renamed = {one[1]: one[2] for one in mutations if one[0] == "rename"}
    options = {name: _renamed(value, renamed) for name, value in options.items() if value is not None}
    flags, more = [], []
    for one in mutations:
        if one[0] == "file":
            files[one[2] % len(files)] = one[1]
        elif one[0] == "flag":
            flags.append(one[1])
        elif one[0] == "twice":
            more += [one[1], one[2]]
        elif one[0].startswith("--") and one[0] in OPTIONS[command]:
            options[one[0]] = one[1]
    given = [(name, one) for name, value in options.items() for one in ([value] if isinstance(value, str) else value)]
    return [command, *files, *(word for pair in given for word in pair), *more, *dict.fromkeys(flags)], renamed


def _renamed(value, renamed):
    """Return a value that means the same where columns have other names."""
    if isinstance(value, tuple):
        pairs = [one.partition("=") for one in value]
        return tuple(f"{arm}={renamed.get(column, column)}" for arm, _, column in pairs)
    return renamed.get(value, value)


def contents(folder):
    """Return all files below a folder, and what is in them."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def attempt(mutations):
    """Return what is wrong with a case, or None."""
    words, renamed = words_of(mutations)
    before = files_of(renamed)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        write(Path(name), before)
        out, err, warned = text_stream(), text_stream(), []
        with warnings.catch_warnings(), redirected(out, err), Bounded(), shown_to(warned):
            warnings.simplefilter("always")
            try:
                cli.main(words)
            except SystemExit as stop:
                code = stop.code
            except Hangs:
                return "it hangs"
            except BaseException as error:  # noqa: BLE001
                return f"{type(error).__name__} gets through: {error}"
        said = err.buffer.getvalue().decode("utf-8", "replace").strip()
        return judged_end(code, said, words) or judged_files(code, before, contents(Path(name)), words) or leaks(warned)


@contextlib.contextmanager
def shown_to(warned):
    """Have warnings kept that the command line shows; it has them printed its own way."""
    usual = warnings.showwarning

    def keep(message, category, filename, lineno, *_):
        warned.append(warnings.WarningMessage(message, category, filename, lineno))

    with mock.patch.object(cli, "show_warning", keep), mock.patch.object(cli, "app", APP):
        try:
            yield
        finally:
            warnings.showwarning = usual


def text_stream():
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict", write_through=True)


@contextlib.contextmanager
def redirected(out, err):
    """Have standard streams be these; standard input is empty."""
    import sys

    old = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(b"")), out, err
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = old


def judged_end(code, said, words):
    """Return what is wrong with how a command ended, and with what it said."""
    if code not in (0, 2, 3):
        return f"exit code {code}: {said[-300:]}"
    if code == 2:
        line = said.splitlines()[-1] if said else ""
        if not line.startswith("Error: "):
            return f"no sentence: {said[-200:]}"
        return sentence_problem(line.removeprefix("Error: "))
    return f"a traceback: {said[-200:]}" if "Traceback" in said and "--debug" not in words else None


def judged_files(code, before, after, words):
    """Return what is wrong with the files that a command left."""
    if code == 2 and set(after) != set(before):
        return f"something was left: {sorted(set(after) - set(before))[:3]}"
    changed = [name for name, content in before.items() if after.get(name) != content]
    allowed = {words[words.index("--out") + 1]} if "--out" in words and "--overwrite" in words and code == 0 else set()
    if set(changed) - {os.path.normpath(one) for one in allowed if one}:
        return f"files were changed: {changed}"
    return None
