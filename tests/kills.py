"""Commands that are killed, at every step they take on the disk or at random moments.

Run as a process of its own (``python -m tests.kills``), which loads everything once and forks a child for each kill: imports take
longer than the work. A step is what the interpreter reports before it opens, makes, renames, locks or removes something below a
folder; the child is killed just before the step.
"""

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "fcntl.flock", "shutil.rmtree"}


def contents(folder):
    """Return what is below a folder by name: bytes of files, None for folders and links."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in folder.rglob("*")
    }


def leftovers(found):
    """Return the names of what an unfinished run left."""
    return [name for name in found if ".unfinished-" in name]


def count_steps(folder, act):
    """Call `act` with the number of each step below a folder, before it is taken."""
    count = 0

    def hook(event, arguments):
        nonlocal count
        if event in STEPS and (event == "fcntl.flock" or str(folder) in os.fsdecode(_text(arguments[0]))):
            count += 1
            act(count)

    sys.addaudithook(hook)


def _text(argument):
    return argument if isinstance(argument, str | bytes | os.PathLike) else ""


SAID, _name = tempfile.mkstemp()
"""What the last child said to standard error: a file without a name."""
Path(_name).unlink()


def forked(work, before=lambda: None):
    """Start a child that does some work, in silence, and return its number."""
    os.ftruncate(SAID, 0)
    os.lseek(SAID, 0, os.SEEK_SET)
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        # A shell has it ignored by what it starts in the background.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        silence = os.open(os.devnull, os.O_RDWR)
        for handle, now in enumerate((silence, silence, SAID)):
            os.dup2(now, handle)
        before()
        code = work() or 0
    except SystemExit as stop:
        code = stop.code or 0
    except KeyboardInterrupt:
        code = 130
    finally:
        os._exit(code)


def said():
    """Return the last words of the last child."""
    return os.pread(SAID, 10_000, 0).decode(errors="replace")


def ended(child):
    """Return the exit code of a child; minus the number of the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(step, sent, folder, work):
    """Have a child killed at a step; return its exit code."""

    def act(count):
        if count == step:
            os.kill(os.getpid(), sent)
            time.sleep(0)  # where the signal has a handler, it is called here

    return ended(forked(work, lambda: count_steps(folder, act)))


def killed_after(seconds, sent, work):
    """Have a child killed after some seconds of its own processor time; return its exit code."""
    read, write = os.pipe()
    child = forked(work, lambda: os.write(write, b"."))
    os.read(read, 1)
    os.close(read)
    os.close(write)
    clock = (~child << 3) | 2  # the clock of a process, by its number
    seconds += time.clock_gettime(clock)
    while True:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        if time.clock_gettime(clock) >= seconds:
            os.kill(child, sent)
            break
        time.sleep(0.0005)
    return ended(child)


def steps_of(folder, work):
    """Return the number of steps that some work takes, and the processor time."""
    read, write = os.pipe()

    def told():
        nonlocal steps
        started = time.process_time()
        code = code_of(work)
        os.write(write, json.dumps([steps, time.process_time() - started, code]).encode())

    steps = 0

    def act(count):
        nonlocal steps
        steps = count

    code = ended(forked(told, lambda: count_steps(folder, act)))
    assert code == 0, code
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        steps, seconds, code = json.loads(pipe.read())
    assert code == 0, code
    return steps, seconds


def code_of(work):
    try:
        return work() or 0
    except SystemExit as stop:
        return stop.code or 0


def write_old(folder):
    """Results of an earlier run, beside something of the user's."""
    from orthocal.files.atomic import Results

    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with Results(folder, "probe", ("table/",)).written() as new:
        (new / "table").mkdir()
        for name in ("same", "stale", "table/0", "table/1"):
            (new / name).write_text(f"old {name}")


def write_new(folder):
    """The run that is killed: files replaced, added and no longer there."""
    from orthocal.files.atomic import Results

    with Results(folder, "probe", ("same", "added", "table/")).written() as new:
        (new / "table").mkdir()
        for name in ("same", "added", "table/0"):
            (new / name).write_text(f"new {name}")


def replace_file(folder):
    """The other kind of run that is killed: one file that is replaced."""
    from orthocal.files.atomic import new_file

    with new_file(folder / "same", overwrite=True) as file:
        file.write_text("new same")


def settled(folder):
    """The next command on the folder, as far as it ends what was begun."""
    from orthocal.files.atomic import settle

    settle(folder)


def kill_at_every_step(folder, work, sent, again=False):
    """Kill some work at each of its steps, and with `again` also what ends it, at each of its own; return what was seen.

    After each kill and the next command on the folder, everything is as before or as after an uninterrupted run.
    """

    def fresh():
        shutil.rmtree(folder, ignore_errors=True)
        write_old(folder)

    fresh()
    old = contents(folder)
    steps, _ = steps_of(folder, lambda: work(folder))
    new = contents(folder)
    assert old != new
    assert not leftovers(new)
    seen = {"steps": steps, "kills": 0, "old": 0, "new": 0, "left": 0}
    for step in range(1, steps + 1):
        for second in range(1, 1000) if again else [0]:
            fresh()
            assert killed_at(step, sent, folder, lambda: work(folder)) in {-sent, 128 + sent}
            more = killed_at(second, sent, folder, lambda: settled(folder)) if again else 0
            seen["left"] += bool(leftovers(contents(folder)))
            settled(folder)
            found = contents(folder)
            assert found in (old, new), (step, second, set(found))
            seen["kills"] += 1
            seen["new" if found == new else "old"] += 1
            if more == 0:
                break
    return seen


def lost_signals(folder, kills, seed):
    """Send Ctrl-C to children that read a small table over and over; return how many did not notice."""
    from orthocal.files.tables import read_table

    (folder / "table.csv").write_text("a,b\n" + "1,2.5\n" * 200)
    read_table(folder / "table.csv")

    def work():
        for _ in range(5000):
            read_table(folder / "table.csv")

    rng = random.Random(seed)
    return Counter(killed_after(rng.uniform(0, 0.05), signal.SIGINT, work) for _ in range(kills))


def race(folder, starts, seed):
    """Start runs into one folder, eight at a time, and kill some; return how they ended.

    Each wrote all of its results or was refused, and the folder holds the results of one of them.
    """
    from orthocal import OrthocalError
    from orthocal.files.atomic import Results, new_file

    def work(number):
        try:
            with new_file(folder / f"file {number}") as file:  # by itself, so never refused
                file.write_text("one")
        except OrthocalError:
            return 8
        try:
            with Results(folder, "probe", ("one", "other")).written() as new:
                for name in ("one", "other"):
                    (new / name).write_text(str(number))
        except OrthocalError as error:
            return 7 if str(error).startswith("Another run is writing") else 9
        return 0

    rng, running, seen = random.Random(seed), [], Counter()
    for number in range(starts):
        running.append(forked(lambda number=number: work(number)))
        if rng.random() < 0.2:
            os.kill(rng.choice(running), signal.SIGKILL)
        if len(running) == 8:
            seen[ended(running.pop(0))] += 1
    seen.update(ended(child) for child in running)
    settled(folder)
    found = contents(folder)
    assert not leftovers(found)
    assert found["one"] == found["other"]
    return seen


def main(task, folder, sent, *more):
    """Print what was seen when something was killed at every step, or by chance."""
    if task in {"race", "lost_signals"}:
        print(json.dumps(globals()[task](Path(folder), int(sent), 1)))
    else:
        print(json.dumps(kill_at_every_step(Path(folder), globals()[task], int(sent), "again" in more)))


if __name__ == "__main__":
    main(*sys.argv[1:])
