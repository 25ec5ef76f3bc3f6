"""Tables larger than memory: where Dask runs, what it reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orthocal.errors import OrthocalError, UnavailableError
from orthocal.formats import first_words, shown
from orthocal.maps import Map

PATIENCE = 10
"""Seconds that a scheduler may take to answer."""
PARTS_FOLDER = "calibrated"
"""Folder of the calibrated table."""


def require_installed() -> None:
    """Dask can be had."""
    try:
        import distributed
        from dask import dataframe
    except ImportError:
        raise UnavailableError(
            "`--engine dask` must have Dask; it is not installed. Use: pip install 'orthocal[dask]'"
        ) from None
    del dataframe, distributed


@contextmanager
def connected(scheduler: str | None, jobs: int) -> Iterator[None]:
    """Have Dask work where it was asked to; processes that were started for the occasion are ended."""
    from distributed import Client
    from distributed.scheduler import KilledWorker

    try:
        if scheduler is None:
            with _processes(jobs) as local, Client(local):
                yield
        else:
            with _client(scheduler):
                yield
    except KilledWorker as error:
        raise OSError(
            f"A task lost its worker {error.allowed_failures + 1} times, most likely for want of memory. Give workers more of "
            "it, or the table more and smaller files."
        ) from None


def workers_of(jobs: int) -> int:
    """Return a number of processes; -1 is one per core."""
    from joblib import effective_n_jobs

    return int(effective_n_jobs(jobs))


def words_of_engine(scheduler: str | None, jobs: int) -> str:
    """Say where the work is done."""
    return f"Dask, scheduler at {scheduler}" if scheduler else f"Dask, workers here: {workers_of(jobs)}"


def _processes(jobs: int) -> Any:
    import logging

    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers_of(jobs),
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )


def _client(address: str) -> Any:
    from distributed import Client

    try:
        return Client(address, timeout=PATIENCE)
    except (OSError, ValueError):
        raise OrthocalError(
            f"`--scheduler` must be the address of a Dask scheduler that runs; {shown(address)} does not answer. Start one with: "
            "dask scheduler"
        ) from None


@contextmanager
def readable(data: str) -> Iterator[None]:
    """Say in one sentence what is wrong with the data, wherever it was found out."""
    from pyarrow import ArrowException

    try:
        yield
    except OrthocalError:
        raise
    except (ArrowException, ValueError) as error:
        raise OrthocalError(
            f"The data {data} must be tables that can be worked on; {_first_line(error)} Check the files."
        ) from error


def _first_line(error: Exception) -> str:
    """Of what was said first: Dask puts words of its own before it."""
    said = str(error).partition("Original Message: ")[2] or str(error)
    line = next((line for line in said.splitlines() if line.strip()), type(error).__name__)
    return first_words(ValueError(line))


def read_frame(data: str, *, as_it_is: bool = False) -> Any:
    """Return a dask.dataframe of a table, of a folder of them or of those a pattern finds.

    Parameters
    ----------
    data : str
    as_it_is : bool, default False
        Columns keep their types, as far as the file has any: for copies, not for work.
    """
    from orthocal.files.tables import require_different

    files = _files(data)
    with readable(data):
        frame = READERS[_one_ending(files, data)](files, as_it_is)
    require_different(list(frame.columns), Path(data))
    return frame


def _files(data: str) -> list[str]:
    from fsspec.core import get_fs_token_paths

    try:
        system, _, paths = get_fs_token_paths(data)
        found = [file for path in paths for file in sorted(system.find(path))]
    except (ImportError, ValueError) as error:
        raise OrthocalError(
            f"The data {shown(data)[1:-1]} cannot be read: {_first_line(error)} Check the path."
        ) from None
    files = [str(system.unstrip_protocol(file)) for file in found if not Path(file).name.startswith(("_", "."))]
    if not files:
        raise OrthocalError(f"The data {data} must be a table, a folder of them or a pattern; no file is there.")
    return files


def require_utf_8(encoding: str | None, engine: str) -> None:
    """No other encoding is named: only tables in memory are read in any."""
    if encoding is not None:
        raise OrthocalError(
            f"`--encoding` must be left out with `--engine {engine}`, which reads UTF-8; it is {shown(encoding)}."
        )


def files_read(data: str, out: Path) -> list[Path]:
    """Return the files of a table that are on this machine; results must not become part of it."""
    from orthocal.cli.sources import require_apart

    require_apart(data, out)
    return [Path(file.removeprefix("file://")) for file in _files(data) if file.startswith(("file://", "/"))]


def _one_ending(files: list[str], data: str) -> str:
    from orthocal.files.tables import ending

    endings = {ending(Path(file), READERS) for file in files}
    if len(endings) > 1:
        raise OrthocalError(
            f"The files of {data} must be of one kind; there are {' and '.join(sorted(endings))}. Use a pattern."
        )
    return endings.pop()


def _parquet(files: list[str], as_it_is: bool) -> Any:
    from dask import dataframe as dd

    return dd.read_parquet(files, index=False, **({"dtype_backend": "pyarrow"} if as_it_is else {}))


def _csv(files: list[str], _: bool) -> Any:
    from dask import dataframe as dd

    return dd.read_csv(files)


def _packed_csv(files: list[str], _: bool) -> Any:
    from dask import dataframe as dd

    return dd.read_csv(files, blocksize=None)  # a packed file cannot be entered in its middle


READERS: dict[str, Callable[[list[str], bool], Any]] = {".csv": _csv, ".csv.gz": _packed_csv, ".parquet": _parquet}


def write_parts(fitted: Map, data: str, folder: Path, prediction: str, rows: int | None) -> None:
    """Write the table with one more column as Parquet, partition by partition, each by the worker that has it."""
    from pyarrow import parquet

    from orthocal.engines.dask.calibrator import calibrated_column

    frame = read_frame(data, as_it_is=True)
    wide = frame.assign(**{f"{prediction}_calibrated": calibrated_column(fitted, frame[prediction])})
    wide.to_parquet(str(folder / PARTS_FOLDER), write_index=False, name_function=_name_of)
    written = sum(
        parquet.ParquetFile(file).metadata.num_rows for file in (folder / PARTS_FOLDER).glob("part-*.parquet")
    )
    if rows is not None and written != rows:
        raise OrthocalError(
            f"`--out` must name a folder that every worker sees; of {rows:,} rows {written:,} arrived. Share the folder."
        )


def _name_of(number: int) -> str:
    return f"part-{number:06}.parquet"
