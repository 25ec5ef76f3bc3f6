"""Map files: records and bytes that were tampered with are refused, or are maps whose every form agrees."""

import contextlib
import copy
import io
import json
import tempfile
from pathlib import Path

import numpy as np

import orthocal
from orthocal.assessment.effect_band import EffectBand
from orthocal.cli.map_options import ApplyOptions, ExportOptions
from orthocal.cli.maps import apply, export
from orthocal.group_columns import DerivedGroups, GroupPart
from orthocal.group_maps import GroupMap, GroupShifts
from orthocal.joint_maps import DecisionShifts, JointMap
from orthocal.mapfile import to_record
from orthocal.maps import AffineMap, IdentityMap, MixtureMap, OpenStepMap, SigmoidMap, SplineMap, StepMap
from tests.fuzz.hostile import NAMES
from tests.fuzz.judgement import judged, not_finite

NAME = "map files"
NAN = float("nan")
BAND = EffectBand(OpenStepMap([0.0], [NAN, 1.0]), OpenStepMap([0.5], [3.0, 4.0]), 0.95, True, 40)
ABOUT = {
    "columns": ["tau"],
    "fitted_range": [-1.0, 1.0],
    "fitted_ranges": [[-1.0, 1.0]],
    "arms": ["call"],
    "band": BAND.to_dict(),
    "effect": "CATE(arm=1, control=0)",
}
"""What a study says of its map in the file, and what the command line reads of it."""
AGE = DerivedGroups("age", (GroupPart("years", (), [60.0], ("age up to 60", "age over 60")),))
KNOTS = [0.0] * 4 + [1.0] + [2.0] * 4
MAPS = [
    IdentityMap(),
    AffineMap(1.0, -2.0),
    StepMap([0.0, 1.0], [1.0, 2.0, 3.0]),
    SigmoidMap(-1.0, 2.0, 0.1, 1.7),
    SplineMap(KNOTS, [0.0, 1.0, 2.0, 3.0, 5.0]),
    MixtureMap([0.5, 0.5], (AffineMap(0.0, 1.0), StepMap([], [2.0]))),
    JointMap([0.0, 1.0], [[1.0, 0.0], [0.5, 0.5]]),
    JointMap([0.0], [[1.0]], (DecisionShifts([0.1], [[0.5]], [[0.0], [0.1], [-0.1]]),)),
    GroupMap((GroupShifts("age", ("age over 60", "age up to 60"), [], [[0.5], [1.0], [0.0]]),), (), (AGE,)),
    GroupMap((GroupShifts("sex", ("f", "m"), [0.0], [[0.5, 1.0], [-1.0, -1.0], [0.0, 0.0]]),), (AffineMap(0.0, 1.0),)),
]
VALUES = [
    None,
    True,
    "a",
    "",
    [],
    {},
    [1.0],
    [[1.0]],
    -1,
    0,
    1,
    2.5,
    1e49,
    1e60,
    1e308,
    -1e308,
    1e-320,
    10**400,
    [1.0, "a"],
    [None],
    {"shape": "affine"},
    ["a", "b"],
    [2.0, 1.0],
    [0.0, 0.0],
    [1e50, 1e50],
    "1.0",
    "joint",
    "step",
    2,
    *NAMES[:8],
]
BYTES = [b"\xff", b"\0", b"NaN", b"Infinity", b"1e999", b"}", b"{", b'"', b"[", b",", b"\xef\xbb\xbf", b"9" * 50, b" "]
POINTS = np.array([-1e9, -2.0, -1.0, 0.0, 0.3, 1.0, 1.5, 2.0, 700.0, 1e9])


def mutations(rng):
    """Return a map, and changes of its record or bytes."""
    found = [("map", int(rng.integers(len(MAPS))))]
    if rng.random() < 0.5:
        found.append(("about", 1))
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.75:
            what = str(rng.choice(["set", "drop", "copy", "add"], p=[0.75, 0.1, 0.05, 0.1]))
            found.append((what, int(rng.integers(1000)), int(rng.integers(len(VALUES)))))
        else:
            what = str(rng.choice(["insert", "cut", "flip"]))
            found.append((what, int(rng.integers(10_000)), int(rng.integers(len(BYTES)))))
    return found


def places(record, path=()):
    """Yield the paths to all that a record holds."""
    items = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def attempt(mutations):
    """Return what is wrong with a case, or None."""
    words = dict(one for one in mutations if len(one) == 2)
    record = copy.deepcopy(to_record(MAPS[words.get("map", 1)], ABOUT if "about" in words else None))
    content = None
    for what, place, value in (one for one in mutations if one[0] in ("set", "drop", "copy", "add")):
        paths = list(places(record))
        if paths:
            change(record, paths[place % len(paths)], what, copy.deepcopy(VALUES[value]))
    content = json.dumps(record).encode()
    for what, place, value in (one for one in mutations if one[0] in ("insert", "cut", "flip")):
        at = place % (len(content) + 1)
        tail = content[at:] if what == "insert" else b"" if what == "cut" else content[at + 1 :]
        content = content[:at] + (b"" if what == "cut" else BYTES[value]) + tail
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.json"
        path.write_bytes(content)
        problem = judged(lambda: used(path), finite=not_finite) or commanded(path)
        if problem is None and path.read_bytes() != content:
            problem = "the map file was changed"
        return problem or (
            None if [one.name for one in Path(folder).iterdir()] == ["map.json"] else "something was left"
        )


def change(record, path, what, value):
    """Change a record in one place."""
    holder = record
    for key in path[:-1]:
        holder = holder[key]
    if what == "drop":
        del holder[path[-1]]
    elif what == "copy" and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[path[-1]]))
    elif what == "add" and isinstance(holder, dict):
        holder["more"] = value
    else:
        holder[path[-1]] = value


def used(path):
    """Load a map, predict, and see that its other forms agree; they may refuse it in a sentence."""
    fitted = orthocal.load(path)
    again = path.with_name("again.json")
    orthocal.save(fitted, again)
    assert to_record(orthocal.load(again)) == to_record(fitted)
    again.unlink()
    if isinstance(fitted, JointMap):
        answer = fitted.predict(np.zeros((3, fitted.arms)))
        orthocal.to_sql(fitted, [f"tau{k}" for k in range(fitted.arms)])
        orthocal.to_python(fitted)
        return answer
    groups = {name: np.array(["f", "m"] * (len(POINTS) // 2), dtype=object) for name in getattr(fitted, "columns", ())}
    answer = fitted.predict(POINTS, groups) if isinstance(fitted, GroupMap) else fitted.predict(POINTS)
    orthocal.to_sql(fitted, "tau")
    space = {}
    exec(orthocal.to_python(fitted), space)
    if not isinstance(fitted, GroupMap):
        python = np.array([space["calibrate"](one) for one in POINTS.tolist()])
        scale = np.abs(answer).max() + np.abs(python).max()
        assert np.abs(python - answer).max() <= 1e-6 * scale, (python, answer)
    return answer


def commanded(path):
    """Apply and export a map as the command line does; every sentence is judged, and nothing is left."""
    table, out = path.with_name("data.csv"), path.with_name("new.csv")
    table.write_text("tau,tau2,sex,years\n0.5,1,f,30\n", encoding="utf-8")
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        problems = [
            judged(lambda: apply(ApplyOptions(map_file=path, data=table, out=out, overwrite=True))),
            judged(lambda: apply(ApplyOptions(map_file=path, data=table, out=out, overwrite=True, interval=True))),
            judged(lambda: export(ExportOptions(map_file=path, form="sql"))),
            judged(lambda: export(ExportOptions(map_file=path, form="json"))),
        ]
    table.unlink()
    out.unlink(missing_ok=True)
    return next((problem for problem in problems if problem is not None), None)
