"""Earlier verdicts that were tampered with: refused in a sentence, or compared with the verdict of now."""

import copy
import json
import tempfile
from pathlib import Path

import orthocal
from orthocal.reporting.page.document import Page
from orthocal.reporting.page.since import with_changes
from tests.fuzz.array_doors import LOSS, PREDICTION
from tests.fuzz.judgement import judged
from tests.fuzz.map_files import BYTES, VALUES, change, places

NAME = "earlier verdicts"
NOW = orthocal.assess(PREDICTION, LOSS, draws=20, random_state=0)
ONE = NOW.to_dict()
RECORDS = [
    ONE,
    {"tau": ONE, "other": ONE},
    {"before": ONE, "after": ONE, "checks": ONE["checks"], "map": {"date": "2020"}},
]
PAGE = Page(title="A page", mark="calibrated", tone="good", lead="A verdict.", sections=())


def mutations(rng):
    """Return a record, whether it is a file, and changes of it."""
    found = [("record", int(rng.integers(len(RECORDS)))), ("file", int(rng.integers(2)))]
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.85:
            what = str(rng.choice(["set", "drop", "copy", "add"]))
            found.append((what, int(rng.integers(10_000)), int(rng.integers(len(VALUES)))))
        else:
            found.append((str(rng.choice(["insert", "cut"])), int(rng.integers(10_000)), int(rng.integers(len(BYTES)))))
    return found


def attempt(mutations):
    """Return what is wrong with a case, or None."""
    words = dict(one for one in mutations if len(one) == 2)
    record = copy.deepcopy(RECORDS[words.get("record", 0)])
    for what, place, value in (one for one in mutations if one[0] in ("set", "drop", "copy", "add")):
        paths = list(places(record))
        if paths:
            change(record, paths[place % len(paths)], what, copy.deepcopy(VALUES[value]))
    if not words.get("file", 0):
        return judged(lambda: with_changes(PAGE, record, NOW) and None, [record])
    content = json.dumps(record).encode()
    for what, place, value in (one for one in mutations if one[0] in ("insert", "cut")):
        at = place % (len(content) + 1)
        content = content[:at] + (b"" if what == "cut" else BYTES[value] + content[at:])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "assessment.json"
        path.write_bytes(content)
        return judged(lambda: with_changes(PAGE, path, NOW) and None)
