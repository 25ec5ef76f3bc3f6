"""The command line, in this process: exit code, one line of a sentence, no traceback, and nothing of the user's lost."""

import contextlib
import io
import os
import tempfile
import warnings
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet

from orthocal import cli, maps, save
from orthocal.cli.parsing import option_names
from tests.fuzz.api import COLUMN, X
from tests.fuzz.hostile import NAMES, N
from tests.fuzz.judgement import Bounded, Hangs, sentence_problem

NAME = "command line"
TABLE = pa.table(
    {
        "x": X[:, 0],
        "y": COLUMN["y"],
        "a": COLUMN["treatment"],
        "tau": COLUMN["prediction"],
        "other": X[:, 1],
        "w": COLUMN["sample_weight"],
        "g": COLUMN["groups"],
        "town": ["Zürich", "Bern"] * (N // 2),
    }
)
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
COMMANDS = {
    "assess": (("data.csv",), STUDY),
    "calibrate": (("data.csv",), {**STUDY, "--method": "linear"}),
    "choose": (("data.csv",), {**STUDY, "--method": "linear"}),
    "policy": (("data.csv",), {**STUDY, "--method": "linear", "--cost": "0.1"}),
    "apply": (("map.json", "data.csv"), {"--prediction": "tau", "--out": "new.csv"}),
    "export": (("map.json",), {"--format": "sql"}),
}
OPTIONS = [
    "--outcome",
    "--treatment",
    "--prediction",
    "--propensity",
    "--covariates",
    "--exclude",
    "--weight",
    "--groups",
    "--key",
    "--folds",
    "--holdout",
    "--method",
    "--effect",
    "--arm",
    "--control",
    "--instrument",
    "--event",
    "--quantile",
    "--clip",
    "--cost",
    "--by",
    "--tolerance",
    "--level",
    "--bins",
    "--draws",
    "--seed",
    "--jobs",
    "--learner",
    "--encoding",
    "--format",
    "--dialect",
    "--quote",
    "--out",
    "--engine",
    "--redraws",
    "--fail-if",
    "--budget",
    "--spend",
    "--no-such-option",
]
VALUES = [
    "nan",
    "inf",
    "-inf",
    "1e400",
    "-1",
    "0",
    "1",
    "2",
    "0.5",
    "1/3",
    "1/0",
    "a",
    "x",
    "y",
    "tau",
    "town",
    "g",
    "w",
    "",
    " ",
    ",",
    "x,x",
    "all",
    "none",
    "x" * 3000,
    "é",
    "\udce9",
    "data.csv",
    "folder",
    "map.json",
    "no/such/place",
    ".",
    "linear",
    "sql",
    "python",
    "json",
    "mysql",
    "miscalibrated",
    "latin-1",
    "1=tau",
    "1=tau,0=other",
    "dask2",
    "99999999999999999999",
    "0x10",
    "1_0",
    *NAMES,
]
DATA = [
    "data.parquet",
    "empty.csv",
    "header.csv",
    "broken.parquet",
    "folder",
    "missing.csv",
    "data.txt",
    "-",
    "wide.csv",
    "broken.json",
    "",
]
FLAGS = [
    "--dry-run",
    "--json",
    "--overwrite",
    "--interval",
    "--drop-missing",
    "--decisions",
    "--exact",
    "--help",
    "--version",
    "--debug",
]


KNOWN = {home.rpartition(":")[2]: set(option_names(options)) for home, (options, _) in cli.COMMANDS.items()}


def mutations(rng):
    """Return a command, and options, values, flags and files that are hostile."""
    found = [("command", str(rng.choice(list(COMMANDS), p=[0.22, 0.22, 0.05, 0.06, 0.25, 0.2])))]
    if found[0][1] not in ("apply", "export") and rng.random() < 0.95:
        found.append(("flag", "--dry-run"))  # all checks, no pictures
    for _ in range(rng.integers(1, 4)):
        kind = rng.random()
        if kind < 0.65:
            own = [name for name in OPTIONS if name in KNOWN[found[0][1]]]
            found.append((str(rng.choice(own)), str(rng.choice(VALUES))))
        elif kind < 0.8:
            found.append(("file", str(rng.choice(DATA)), int(rng.integers(2))))
        elif kind < 0.9:
            found.append(("flag", str(rng.choice(FLAGS))))
        else:
            found.append(("twice", str(rng.choice(OPTIONS)), str(rng.choice(VALUES))))
    return found


def words_of(mutations):
    """Return the words on the command line."""
    command = dict(one for one in mutations if len(one) == 2).get("command", "assess")
    files, options = list(COMMANDS[command][0]), dict(COMMANDS[command][1])
    flags, more = [], []
    for one in mutations:
        if one[0] == "file":
            files[one[2] % len(files)] = one[1]
        elif one[0] == "flag":
            flags.append(one[1])
        elif one[0] == "twice":
            more += [one[1], one[2]]
        elif one[0].startswith("--") and (one[0] in KNOWN[command] or one[0] == "--no-such-option"):
            options[one[0]] = one[1]
    return [command, *files, *(word for pair in options.items() for word in pair), *more, *dict.fromkeys(flags)]


def prepare(folder):
    """Write files of the user's, some of them broken."""
    csv.write_csv(TABLE, folder / "data.csv")
    parquet.write_table(TABLE, folder / "data.parquet")
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("x,y,a,tau\n")
    (folder / "broken.parquet").write_bytes((folder / "data.parquet").read_bytes()[:500])
    (folder / "data.txt").write_text("hello")
    (folder / "wide.csv").write_bytes((folder / "data.csv").read_text(encoding="utf-8").encode("utf-16"))
    (folder / "broken.json").write_text('{"format": "orthocal-map"')
    (folder / "folder").mkdir()
    (folder / "folder" / "mine.txt").write_text("mine")
    save(maps.AffineMap(1.0, 2.0), folder / "map.json")


def contents(folder):
    """Return all files below a folder, and what is in them."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def attempt(mutations):
    """Return what is wrong with a case, or None."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = Path(name)
        prepare(folder)
        before = contents(folder)
        out, err, words = text_stream(), text_stream(), words_of(mutations)
        with warnings.catch_warnings(record=True), redirected(out, err), Bounded():
            warnings.simplefilter("always")
            usual = warnings.showwarning
            try:
                cli.main(words)
            except SystemExit as stop:
                code = stop.code
            except Hangs:
                return "it hangs"
            except BaseException as error:  # noqa: BLE001
                return f"{type(error).__name__} gets through: {error}"
            finally:
                warnings.showwarning = usual
        return judged_end(code, err, before, contents(folder), words)


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


def judged_end(code, err, before, after, words):
    """Return what is wrong with how a command ended."""
    said = err.buffer.getvalue().decode("utf-8", "replace").strip()
    if code not in (0, 2, 3):
        return f"exit code {code}: {said[-300:]}"
    if code == 2:
        line = said.splitlines()[-1] if said else ""
        problem = sentence_problem(line.removeprefix("Error: "))
        if problem is not None or not line.startswith("Error: "):
            return problem or f"no sentence: {said[-200:]}"
        if set(after) != set(before):
            return f"something was left: {sorted(set(after) - set(before))[:3]}"
    changed = [name for name, content in before.items() if after.get(name) != content]
    allowed = {words[words.index("--out") + 1]} if "--out" in words and "--overwrite" in words and code == 0 else set()
    if set(changed) - {os.path.normpath(one) for one in allowed if one}:
        return f"files were changed: {changed}"
    leaked = [
        kind
        for kind in ("RuntimeWarning", "DeprecationWarning", "Traceback")
        if kind in said and "--debug" not in words
    ]
    return f"{leaked[0]} leaks: {said[-200:]}" if leaked else None
