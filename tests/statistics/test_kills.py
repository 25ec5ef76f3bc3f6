"""Commands that are killed lose nothing: the counts are printed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def seen_by(module, *words):
    """Return what was seen, by a process that has no threads to fork beside."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, words)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    print(module, *words[1:], done.stdout)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_200_kills_of_the_command_line_lose_nothing(tmp_path):
    """By Ctrl-C, SIGTERM and SIGKILL: after the next command every folder is whole, and nothing else was touched."""
    seen = seen_by("tests.kill_commands", tmp_path, 200, 1)
    assert seen["kills"] == 200
    assert min(seen["old"], seen["new"], seen["left"], seen["SIGINT"], seen["SIGTERM"], seen["SIGKILL"]) > 10


@pytest.mark.slow
@pytest.mark.parametrize("work", ["write_new", "replace_file"])
def test_killed_twice_at_every_pair_of_steps_all_is_old_or_all_is_new(work, tmp_path):
    """While writing, and while the next command ends what was begun."""
    seen = seen_by("tests.kills", work, tmp_path / "out", int(signal.SIGKILL), "again")
    assert min(seen["old"], seen["new"]) > 20
