"""The command line, killed at random moments: a process of its own, as `tests.kills` is."""

import importlib
import json
import os
import random
import signal
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.kills import code_of, contents, ended, forked, killed_after, killed_at, leftovers, said, steps_of

TAU = ("--prediction", "tau")
QUICK = (
    "--outcome",
    "y",
    "--treatment",
    "a",
    *TAU,
    "--propensity",
    "0.5",
    "--covariates",
    "x0",
    "--folds",
    "2",
    "--jobs",
    "1",
)
DATA = "data.csv"


@dataclass(frozen=True)
class Command:
    """A command in two variants, where it writes, and how often it is killed: the dear ones less often."""

    place: str
    words: tuple
    variants: tuple
    weight: int

    def run(self, variant):
        from orthocal import cli

        cli.main([*self.words, *self.variants[variant]])


SEEDS = (("--seed", "1"), ("--seed", "2"))
COMMANDS = [
    Command("c", ("calibrate", DATA, *QUICK, "--method", "linear", "--holdout", "0", "--out", "c"), SEEDS, 8),
    Command("a", ("assess", DATA, *QUICK, "--out", "a"), SEEDS, 5),
    Command("t", ("apply", "map.json", *TAU, "--out", "t/table.csv", "--overwrite"), ((DATA,), ("other.csv",)), 5),
    Command(
        "s",
        ("export", "map.json", "--out", "s/map", "--overwrite"),
        (("--format", "json"), ("--format", "sql")),
        5,
    ),
    Command("u", ("audit", DATA, *QUICK, "--within", "x0", "--out", "u"), SEEDS, 2),
    Command("h", ("choose", DATA, *QUICK, "--method", "linear", "--out", "h"), SEEDS, 2),
    Command("p", ("policy", DATA, *QUICK, "--method", "linear", "--cost", "0.1", "--out", "p"), SEEDS, 2),
    Command("d", ("demo", "--method", "linear", "--jobs", "1", "--out", "d"), SEEDS, 1),
]
MINE = ("calibrated.sql", "calibrated.parquet", ".unfinished-thesis")
"""Names of files of the user's, which look like results but are none."""


def prepare(folder):
    """Tables, a map, and things of the user's beside where results go."""
    import numpy as np

    rng = np.random.default_rng(0)
    columns = {name: rng.standard_normal(200) for name in ("x0", "y", "tau")} | {"a": rng.integers(2, size=200)}
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    for name, rows in ((DATA, lines), ("other.csv", lines[:100])):
        (folder / name).write_text("\n".join(rows) + "\n")
    (folder / "map.json").write_text(
        '{"format": "orthocal-map", "version": 1, "shape": "affine", "intercept": 1.0, "slope": 2.0}'
    )
    for command in COMMANDS:
        (folder / command.place).mkdir()
        for name in MINE:
            (folder / command.place / name).write_text("mine")


def load_all(folder, commands):
    """Import here whatever the commands import, so that no child has to; work that starts threads is left to children."""

    def modules():
        for command in commands:
            assert code_of(lambda command=command: command.run(0)) == 0
        (folder / "modules").write_text(" ".join(sys.modules))

    assert ended(forked(modules)) == 0
    for module in (folder / "modules").read_text().split():
        with suppress(ImportError):
            importlib.import_module(module)
    (folder / "modules").unlink()


def next_command(place):
    """The next command on a folder, which is refused, and ends what was begun there all the same."""
    from orthocal import cli

    words = ["export", "map.json", "--format", "sql", "--out", str(place / MINE[0])]
    assert code_of(lambda: cli.main(words)) == 2


class Victim:
    """A command whose results are known, those that lie there now among them."""

    def __init__(self, folder, command):
        self.folder, self.place, self.command = folder, folder / command.place, command
        self.whole = []
        for variant in (0, 1):
            self.steps, self.seconds = steps_of(folder, lambda variant=variant: command.run(variant))
            self.whole.append(contents(self.place))
        assert self.whole[0] != self.whole[1]
        self.now = 1

    def kill(self, sent, rng):
        """Have it killed on its way to its other variant, at a random step or moment; return the exit code."""

        def work():
            self.command.run(1 - self.now)

        if rng.random() < 0.5:
            return killed_at(rng.randint(1, self.steps), sent, self.folder, work)
        return killed_after(rng.uniform(0, self.seconds), sent, work)

    def is_new(self):
        """Whether the other variant is there now; one of them is, whole, and nothing else."""
        found = contents(self.place)
        assert found in self.whole, (self.command, set(found))
        before, self.now = self.now, self.whole.index(found)
        return self.now != before


def kill_commands(folder, kills, seed, commands=COMMANDS):
    """Kill commands by each signal; return how often what was seen.

    After each kill and the next command, everything is as it was or as after an uninterrupted run.
    """
    rng = random.Random(seed)
    os.chdir(folder)
    prepare(folder)
    load_all(folder, commands)
    victims = [Victim(folder, command) for command in commands]
    clean = set(contents(folder))
    user = {path: content for path, content in contents(folder).items() if "/" not in path}
    seen = Counter()
    while seen["kills"] < kills:
        (victim,) = rng.choices(victims, [command.weight for command in commands])
        sent = rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
        code = victim.kill(sent, rng)
        assert code in {0, -sent, 128 + sent}, (sent, code, said())  # 0: it was done before the signal came
        left = bool(leftovers(set(contents(folder)) - clean))
        assert not left or code == -sent  # who has time to clean up does
        assert ended(forked(lambda victim=victim: next_command(victim.place))) == 0
        new = victim.is_new()
        assert {path: content for path, content in contents(folder).items() if "/" not in path} == user
        if code:
            seen.update(["kills", sent.name, "new" if new else "old", *(["left"] * left), victim.command.words[0]])
    return seen


def main(folder, kills, seed, *names):
    """Print what was seen when commands, of those names or all of them, were killed."""
    commands = [command for command in COMMANDS if not names or command.words[0] in names]
    print(json.dumps(kill_commands(Path(folder).resolve(), int(kills), int(seed), commands)))


if __name__ == "__main__":
    main(*sys.argv[1:])
