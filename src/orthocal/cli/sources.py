"""Where the rows of a command come from and where calibrated ones go: a table in memory, or one larger than that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthocal.cli.options import ENGINE, Options
from orthocal.cli.plan import number_or_name, split_names
from orthocal.cli.screen import say
from orthocal.errors import OrthocalError
from orthocal.files.streams import FORMATS, add_calibrated
from orthocal.files.tables import ending, read_table, require_column
from orthocal.study import ArmsCalibration, Calibration, Study

if TYPE_CHECKING:
    from pyarrow import DataType


def needed_values(options: Options, there: Sequence[str]) -> list[str]:
    """Return the columns in which no value may be missing; all of them are there."""
    texts = [*split_names(options.propensity or "1"), options.propensity_control or "1"]
    known = [number_or_name(text.rpartition("=")[2]) for text in texts]
    roles = ("outcome", "event", "treatment", "instrument", "weight", "groups", "key")
    names = [getattr(options, role) for role in roles]
    for text in (options.folds, getattr(options, "holdout", "0")):
        names += [text] if isinstance(number_or_name(text), str) else []
    names.append(getattr(options, "spend", None))
    costs = getattr(options, "cost", None)
    known += [number_or_name(text.rpartition("=")[2]) for text in (costs if isinstance(costs, list) else ())]
    found = [name for name in (*names, *options.predicted, *known) if isinstance(name, str)]
    for name in found:
        require_column(there, name, "needed")
    return found


class MemorySource:
    """A table that fits into memory."""

    def __init__(self, options: Options) -> None:
        for name in options.of(ENGINE):
            raise OrthocalError(
                f"`--{name}` must go with `--engine dask` or `local`; the engine is 'memory'. Add one, or leave `--{name}` out."
            )
        self.options, self.path = options, Path(options.data)
        self.files = [self.path]
        self.table = f"calibrated{ending(self.path, FORMATS)}"

    @cached_property
    def data(self) -> Any:
        """The table; rows without a needed value are left out, where that was asked for, and counted."""
        table = read_table(self.path, self.options.encoding)
        require_column(table.column_names, self.options.treatment, "treatment")
        return self._whole(table) if self.options.drop_missing else table

    def _whole(self, table: Any) -> Any:
        import numpy as np

        kept, lost = np.ones(table.num_rows, dtype=bool), []
        for name in needed_values(self.options, table.column_names):
            known = ~np.asarray(table[name].is_null(nan_is_null=True)).astype(bool)
            if not known.all():
                lost.append(f"{int((~known).sum()):,} without {name}")
            kept &= known
        if lost:
            say(f"Dropped {int((~kept).sum()):,} of {table.num_rows:,} rows: {', '.join(lost)}.")
        return table.filter(kept)

    @property
    def kind(self) -> DataType:
        """The type of the treatment column."""
        return self.data[self.options.treatment].type

    @property
    def size(self) -> str:
        """What the data are."""
        return f"{self.options.data}, {self.data.num_rows:,} rows"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have open what must be while the command works: nothing."""
        yield

    def words(self, _: Study) -> dict[str, str]:
        """What else is to be said beforehand."""
        return {}

    def write_calibrated(self, done: Calibration | ArmsCalibration, folder: Path) -> dict[str, str]:
        """Write the table with a column of calibrated predictions; return what else is to be said of the map."""
        add_calibrated(done.map, self.path, folder / self.table, done.columns, encoding=self.options.encoding)
        return {}


class LocalSource:
    """Files larger than memory, in this process."""

    def __init__(self, options: Options) -> None:
        from orthocal.cli.cluster import PARTS_FOLDER, require_utf_8
        from orthocal.engines.local.chunks import files_of

        if options.of(ENGINE).get("scheduler") is not None:
            raise OrthocalError("`--scheduler` must go with `--engine dask`; the engine is 'local'. Leave it out.")
        require_utf_8(options.encoding, "local")
        require_apart(options.data, options.out)
        self.options = options
        self.files: Sequence[Path] = [Path(file) for file in files_of(options.data)]
        self.table = f"{PARTS_FOLDER}/"

    @cached_property
    def data(self) -> Any:
        """The table; rows without a needed value are left out, where that was asked for, and counted."""
        from orthocal.engines.local.table import LocalTable

        table = LocalTable.of_files(self.options.data)
        require_column(table.columns, self.options.treatment, "treatment")
        if not self.options.drop_missing:
            return table
        needed = needed_values(self.options, table.columns)
        lost = table.select(needed).merged(missing_in, total_of)
        if lost[-1]:
            each = [f"{count:,} without {name}" for name, count in zip(needed, lost[:-1], strict=True) if count]
            say(f"Dropped {lost[-1]:,} rows: {', '.join(each)}.")
        return table.where(needed, are_whole)

    @property
    def kind(self) -> DataType:
        """The type of the treatment column."""
        from pyarrow import parquet

        return parquet.read_schema(self.data.chunks[0].path).field(self.options.treatment).type

    @property
    def size(self) -> str:
        """What the data are."""
        return f"{self.options.data}, {len(self.data.names):,} chunks of rows"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have open what must be while the command works: nothing."""
        yield

    def words(self, study: Study) -> dict[str, str]:
        """What else is to be said beforehand."""
        rows = study.rows.count
        return {
            "data": f"{self.options.data}, {rows:,} rows in {len(self.data.names):,} chunks",
            "engine": f"local files, chunks at once: {self.data.workers}",
            **words_of_partitions(study, rows),
        }

    def write_calibrated(self, done: Calibration, folder: Path) -> dict[str, str]:
        """Write the table with a column of calibrated predictions, file by file."""
        (folder / self.table).mkdir()
        for file in self.files:
            if file.suffix == ".duckdb":
                _write_batches(self.data, done, folder / self.table / f"{file.stem}.parquet")
            else:
                add_calibrated(done.map, file, folder / self.table / file.name, done.columns)
        return words_of_bound(done)


def _write_batches(table: Any, done: Calibration, target: Path) -> None:
    from pyarrow import parquet

    from orthocal.engines.partitioned.verdict import calibrated_values

    reader = table.with_column(f"{done.name}_calibrated", calibrated_values, done.name, done.map)
    with reader, parquet.ParquetWriter(target, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def missing_in(part: Any, _: str) -> list[int]:
    """Count the rows of a partition without a value, column by column and in all."""
    missing = part.isna()
    return [*missing.sum().tolist(), int(missing.any(axis=1).sum())]


def total_of(counts: Sequence[Sequence[int]]) -> list[int]:
    """Add up counts."""
    return [sum(column) for column in zip(*counts, strict=True)]


def are_whole(part: Any) -> Any:
    """Return which rows have every value."""
    return part.notna().all(axis=1).to_numpy()


def require_apart(data: str, out: Path) -> None:
    """Results must not become part of the data."""
    if Path(data).is_dir() and out.resolve().is_relative_to(Path(data).resolve()):
        raise OrthocalError(
            f"`--out` must not lie in the folder of the data, whose files are all read; {out} does. Choose another --out."
        )


def words_of_partitions(study: Study, rows: int) -> dict[str, str]:
    """Say how rows in partitions are identified, what is learnt on a sample, and what is put on a grid."""
    from orthocal.engines.partitioned.grid_cells import CELLS

    roles, sample = study.roles, min(study.rows.engine.recipe.sample, rows)
    return {
        "key": roles.groups or roles.key or "covariates, treatment and instrument of a row",
        "sample": f"nuisances are learnt on about {sample:,} rows",
        "grid": "none" if study.exact else f"of {CELLS:,} cells of the prediction",
    }


def words_of_bound(done: Calibration) -> dict[str, str]:
    """Say how near an isotonic map on a grid is to the exact one."""
    if not done.bound:
        return {}
    near = "means of the map up to any prediction are as near those of the exact map"
    return {"bound of the grid": f"{done.bound:.3g}: {near}"}


class DaskSource:
    """A table larger than memory, by Dask."""

    def __init__(self, options: Options) -> None:
        from orthocal.cli.cluster import PARTS_FOLDER, files_read, require_installed, require_utf_8

        require_installed()
        self.options, self.scheduler = options, options.of(ENGINE).get("scheduler")
        if self.scheduler is not None and options.jobs != -1:
            raise OrthocalError("`--jobs` must be left out with `--scheduler`, which decides the number of workers.")
        require_utf_8(options.encoding, "dask")
        self.files: Sequence[Path] = files_read(options.data, options.out)
        self.table = f"{PARTS_FOLDER}/"

    @cached_property
    def data(self) -> Any:
        """The frame; nothing is read yet."""
        import dask

        from orthocal.cli.cluster import read_frame

        frame = read_frame(self.options.data)
        require_column(list(frame.columns), self.options.treatment, "treatment")
        if not self.options.drop_missing:
            return frame
        needed = needed_values(self.options, list(frame.columns))
        missing = frame[needed].isna()
        dropped, *each = dask.compute(missing.any(axis=1).sum(), *(missing[name].sum() for name in needed))
        lost = [f"{int(count):,} without {name}" for name, count in zip(needed, each, strict=True) if count]
        if dropped:
            say(f"Dropped {int(dropped):,} rows: {', '.join(lost)}.")
        return frame.dropna(subset=needed)

    @property
    def kind(self) -> DataType:
        """The type of the treatment column."""
        import pyarrow as pa
        from dask.dataframe.utils import make_meta

        return pa.Table.from_pandas(make_meta(self.data[[self.options.treatment]])).schema[0].type

    @property
    def size(self) -> str:
        """What the data are."""
        return f"{self.options.data}, {self.data.npartitions:,} partitions"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Check what can be checked without Dask, then have it work where it was asked to."""
        from orthocal.cli.cluster import connected, readable

        _ = self.data
        with connected(self.scheduler, self.options.jobs), readable(self.options.data):
            yield

    def words(self, study: Study) -> dict[str, str]:
        """What else is to be said beforehand."""
        from orthocal.cli.cluster import words_of_engine

        rows = study.rows.count
        return {
            "data": f"{self.options.data}, {rows:,} rows in {self.data.npartitions:,} partitions",
            "engine": words_of_engine(self.scheduler, self.options.jobs),
            **words_of_partitions(study, rows),
        }

    def write_calibrated(self, done: Calibration, folder: Path) -> dict[str, str]:
        """Write the table with a column of calibrated predictions; return what else is to be said of the map."""
        from orthocal.cli.cluster import write_parts

        assert done.study is not None  # noqa: S101
        rows = None if self.options.drop_missing else done.study.rows.count
        write_parts(done.map, self.options.data, folder, done.name, rows)
        return words_of_bound(done)
