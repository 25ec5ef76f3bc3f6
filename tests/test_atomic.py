"""Results all or none: killed at every step, in the way of others, on disks that refuse."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from orthocal import OrthocalError
from orthocal.files import scratch
from orthocal.files.atomic import Results, new_file, settle
from orthocal.files.manifest import NAME, manifest_of
from tests.kills import contents, leftovers, write_new, write_old

if os.name == "nt":
    pytest.skip("these tests fork, link and send signals, as POSIX has them", allow_module_level=True)

ROOT = Path(__file__).parents[1]
FCNTL = scratch.fcntl


def killed(work, number, folder, *more):
    """Return what was seen, by a process that has no threads to fork beside."""
    words = [sys.executable, "-m", "tests.kills", work, str(folder), str(int(number)), *more]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("work", ["write_new", "replace_file"])
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_killed_at_every_step_all_is_old_or_all_is_new(work, sent, tmp_path):
    seen = killed(work, sent, tmp_path / "out")
    assert seen["kills"] == seen["steps"] > 10
    assert seen["old"] > 5
    assert seen["new"] > 5
    assert (seen["left"] > 5) == (sent == signal.SIGKILL)  # what is only interrupted cleans up at once


@pytest.fixture
def folder(tmp_path):
    write_old(tmp_path / "out")
    return tmp_path / "out"


def write(folder, *names, command="probe"):
    with Results(folder, command, names).written() as new:
        for name in names:
            (new / name).write_text("new")


def test_what_is_written_is_recorded(folder):
    assert set(manifest_of(folder).files) == {"same", "stale", "table/0", "table/1"}
    write(folder, "same")
    assert set(manifest_of(folder).files) == {"same"}
    assert set(contents(folder)) == {NAME, "notes.txt", "same"}


@pytest.mark.parametrize("name", ["added", "stale", "table"])
@pytest.mark.parametrize("kind", ["file", "folder", "link to a file", "link to a folder", "link to nothing", "pipe"])
def test_whatever_is_in_the_way_is_refused_and_stays(name, kind, folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("mine")
    path = folder / name
    if path.is_file():
        path.unlink()
    elif path.exists():
        path.rename(tmp_path / "table")
    make = {
        "file": lambda: path.write_text("mine"),
        "folder": path.mkdir,
        "link to a file": lambda: path.symlink_to(tmp_path / "elsewhere" / "file"),
        "link to a folder": lambda: path.symlink_to(tmp_path / "elsewhere"),
        "link to nothing": lambda: path.symlink_to(tmp_path / "nothing"),
        "pipe": lambda: os.mkfifo(path),
    }
    make[kind]()
    if (name, kind) == ("table", "folder"):
        (path / "2").write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(OrthocalError, match=rf"{path}.* Move it away, or choose another --out"):
        Results(folder, "probe", ("same", "added", "table/")).require_free()
    with pytest.raises(OrthocalError, match=r"Move it away, or choose another --out"):
        write_new(folder)
    assert contents(tmp_path) == before


def test_what_came_while_the_run_worked_is_refused_too(folder):
    before = contents(folder)

    def late():
        with Results(folder, "probe", ("same", "added")).written() as new:
            (new / "added").write_text("new")
            (folder / "added").write_text("mine")

    with pytest.raises(OrthocalError, match="added was not written by this command"):
        late()
    assert contents(folder) == {**before, "added": b"mine"}


def test_results_of_another_command_and_edited_ones_stay(folder):
    before = contents(folder)
    with pytest.raises(OrthocalError, match=r"holds the results of `probe`. Choose another --out"):
        write(folder, "other", command="another")
    (folder / "stale").write_text("edited")
    with pytest.raises(OrthocalError, match="stale was changed after it was written"):
        write(folder, "same")
    assert contents(folder) == {**before, "stale": b"edited"}


def test_a_folder_goes_on_after_its_user_removed_results(folder):
    (folder / "same").unlink()
    write_new(folder)
    assert (folder / "same").read_text() == "new same"


def test_data_that_are_our_own_results_are_not_replaced(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder / "same")
    for data in (folder / "same", folder / "stale", tmp_path / "link", folder / ".." / "out" / "same"):
        with pytest.raises(OrthocalError, match="is the data file itself"):
            Results(folder, "probe", ("same",), (data,)).require_free()


@pytest.mark.parametrize(
    "record",
    [
        "",
        "[]",
        "{}",
        '{"format": "orthocal-results", "version": 2, "command": "probe", "files": {}}',
        '{"format": "orthocal-results", "version": 1, "command": "probe", "files": {"../notes.txt": "x"}}',
        '{"format": "orthocal-results", "version": 1, "command": "probe", "files": {"/notes.txt": "x"}}',
        '{"format": "orthocal-results", "version": 1, "command": "probe", "files": ["x"]}',
    ],
)
def test_a_record_that_is_none_is_refused(record, folder):
    (folder / NAME).write_text(record)
    before = contents(folder)
    with pytest.raises(OrthocalError, match="must be the record of results that orthocal wrote; it is not"):
        write_new(folder)
    assert contents(folder) == before


KILLED_BEFORE_THE_FIRST_MOVE = """
import os, sys
from pathlib import Path
from tests.kills import write_new

Path.replace = lambda *_: os.kill(os.getpid(), 9)
write_new(Path(sys.argv[1]))
"""


def test_who_edits_between_a_kill_and_the_next_command_keeps_it(folder):
    words = [sys.executable, "-c", KILLED_BEFORE_THE_FIRST_MOVE, str(folder)]
    assert subprocess.run(words, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    (folder / "same").write_text("edited")
    for _ in range(2):
        with pytest.raises(OrthocalError, match="same was changed after it was written. Move it away"):
            settle(folder)
        assert (folder / "same").read_text() == "edited"
    (folder / "same").rename(folder / "mine")
    settle(folder)
    assert (folder / "mine").read_text() == "edited"
    assert (folder / "same").read_text() == "new same"
    assert set(contents(folder)) == {NAME, "added", "mine", "notes.txt", "same", "table", "table/0"}


def test_what_a_living_process_works_on_is_left_alone(tmp_path):
    """Two files at once in one folder are fine, one file twice is not; what a living process has begun is not swept."""
    with new_file(tmp_path / "one") as one:
        one.write_text("1")
        with new_file(tmp_path / "two") as two:
            two.write_text("2")
            with (
                pytest.raises(OrthocalError, match=r"Another run is writing .*one. Wait for it"),
                new_file(tmp_path / "one"),
            ):
                pass
        settle(tmp_path)
        with Results(tmp_path, "probe", ("three",)).written() as new:
            (new / "three").write_text("3")
            with pytest.raises(OrthocalError, match=r"Another run is writing"):
                write(tmp_path, "four")
    assert set(contents(tmp_path)) == {"one", "two", "three", NAME}


def test_names_like_ours_that_are_not_ours_stay(tmp_path):
    (tmp_path / f"{scratch.PREFIX}notes").mkdir()
    (tmp_path / f"{scratch.PREFIX}notes" / "mine").write_text("mine")
    (tmp_path / f"{scratch.PREFIX}file").write_text("mine")
    (tmp_path / f"{scratch.PREFIX}link").symlink_to(tmp_path)
    (tmp_path / ".unfinished-thesis").mkdir()
    before = contents(tmp_path)
    settle(tmp_path)
    assert contents(tmp_path) == before
    (tmp_path / f"{scratch.PREFIX}results").symlink_to(tmp_path)
    with pytest.raises(OrthocalError, match="`--out` must lie where files can be written"):
        write(tmp_path, "one")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_is_refused_before_work_begins(number, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", refuse)
    for what in (Results(tmp_path / "out", "probe", ()).written(), new_file(tmp_path / "file")):
        with pytest.raises(
            OrthocalError, match=f"`--out` must lie where files can be written; .*{os.strerror(number)}"
        ):
            what.__enter__()
    assert not list(tmp_path.iterdir())


def test_a_folder_below_a_file_or_of_no_system_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OrthocalError, match="`--out` must name a folder"):
        write(tmp_path / "file", "x")
    for place in (tmp_path / "file" / "deep", Path("/proc/none/out")):
        with pytest.raises(OrthocalError, match="`--out` must lie where files can be written"):
            write(place, "x")
    assert contents(tmp_path) == {"file": b"mine"}


@pytest.mark.parametrize("step", ["write_manifest", "_sync_all", "_sync"])
def test_a_full_disk_changes_nothing(step, folder, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = contents(folder)
    with monkeypatch.context() as context:
        context.setattr(f"orthocal.files.atomic.{step}", full)
        with pytest.raises(OSError, match="No space left"):
            write_new(folder)
    settle(folder)
    found = contents(folder)
    assert not leftovers(found)
    assert found == before or (step == "_sync" and (folder / "added").exists())


def test_where_there_are_no_locks_nothing_is_swept(folder, monkeypatch):
    monkeypatch.setattr(scratch, "fcntl", None)
    write_new(folder)
    assert not leftovers(contents(folder))
    (folder / f"{scratch.PREFIX}results").mkdir()
    (folder / f"{scratch.PREFIX}results" / scratch.LOCK).write_text("")
    settle(folder)
    with pytest.raises(OrthocalError, match=r"or was killed, which this file system cannot tell. If none is, delete"):
        write_new(folder)


class WindowsLocks:
    """Locks as `msvcrt` has them: a file that another handle has locked is a permission that is denied."""

    LK_NBLCK = 2

    def locking(self, handle, mode, size):
        assert (mode, size) == (self.LK_NBLCK, 1)
        try:
            FCNTL.flock(handle, FCNTL.LOCK_EX | FCNTL.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def test_windows_locks_sweep_what_was_killed_and_leave_what_lives(folder, monkeypatch):
    monkeypatch.setattr(scratch, "fcntl", None)
    monkeypatch.setattr(scratch, "msvcrt", WindowsLocks())
    place = folder / f"{scratch.PREFIX}results"
    place.mkdir()
    with (place / scratch.LOCK).open("w") as living:
        FCNTL.flock(living, FCNTL.LOCK_EX)
        settle(folder)
        with pytest.raises(OrthocalError, match="Another run is writing .*. Wait for it"):
            write_new(folder)
    write_new(folder)  # the lock went with its holder
    assert set(contents(folder)) == {NAME, "added", "notes.txt", "same", "table", "table/0"}


def test_a_file_system_without_locks_is_no_failure(folder, monkeypatch):
    def unsupported(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(scratch.fcntl, "flock", unsupported)
    write_new(folder)
    assert set(contents(folder)) == {NAME, "added", "notes.txt", "same", "table", "table/0"}


def test_a_thread_may_write_too(folder):
    thread = threading.Thread(target=write_new, args=(folder,))
    thread.start()
    thread.join()
    assert (folder / "added").exists()


def test_a_signal_waits_for_the_end_of_a_step():
    done = []

    def stopped():
        with scratch.uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("step")
        done.append("more")

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert done == ["step"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_replacing_a_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path):
    (tmp_path / "private").write_text("old")
    (tmp_path / "private").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "private")
    with (
        pytest.raises(OrthocalError, match=r"link exists. Choose another name, or add --overwrite"),
        new_file(tmp_path / "link"),
    ):
        pass
    with new_file(tmp_path / "link", overwrite=True) as file:
        file.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "private").read_text() == "new"
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OrthocalError, match="`--out` must name a file"), new_file(tmp_path / "pipe", overwrite=True):
        pass


def test_runs_at_once_into_one_folder_never_mix(tmp_path):
    """Eight at a time, some of them killed: each has written all of its results or was refused with one sentence."""
    seen = killed("race", 60, tmp_path)
    assert set(seen) <= {"0", "7", str(-signal.SIGKILL)}
    assert sum(seen.values()) == 60
