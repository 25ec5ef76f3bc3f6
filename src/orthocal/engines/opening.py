"""Which engine a table belongs to: what a user has in hand says it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from orthocal.engines.protocol import PartitionedTable
from orthocal.engines.room import memory


def _of_dask(data: Any) -> PartitionedTable | None:
    """A dask.dataframe."""
    if not hasattr(data, "to_delayed"):
        return None
    from orthocal.engines.dask.table import DaskTable

    return DaskTable(data)


def _of_duckdb(data: Any) -> PartitionedTable | None:
    """A DuckDB relation."""
    if type(data).__name__ != "DuckDBPyRelation":
        return None
    from orthocal.engines.local.table import LocalTable

    return LocalTable.of_relation(data)


def _of_large_files(data: Any) -> PartitionedTable | None:
    """Files that take more than a share of the memory, and what only an engine of partitions reads: folders, patterns, DuckDB."""
    if not isinstance(data, str | Path) or not why_local(data):
        return None
    from orthocal.engines.local.table import LocalTable

    return LocalTable.of_files(data)


def _of_spark(data: Any) -> PartitionedTable | None:
    """A frame of Spark, classic or Connect."""
    if not hasattr(data, "mapInArrow"):
        return None
    from orthocal.engines.spark.table import SparkTable

    return SparkTable.of_frame(data)


def why_local(data: str | Path) -> str:
    """Return why files are to be read in chunks; nothing where memory is large enough."""
    path = Path(data)
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except OSError:  # a name that no file can have, which whoever reads it says
        return ""
    if is_file and path.suffix != ".duckdb":
        size = path.stat().st_size
        return f"{path} has {size / 1e9:.1f} GB, more than a quarter of the memory" if size > SHARE * memory() else ""
    if is_file:
        return f"{path} is a DuckDB file"
    return f"{path} is not a single file" if is_folder or set("*?[") & set(str(data)) else ""


SHARE = 0.25
"""Of the memory, beyond which files are read in chunks."""


def _already(data: Any) -> PartitionedTable | None:
    """A table in partitions."""
    return data if isinstance(data, PartitionedTable) else None


ENGINES: dict[str, Callable[[Any], PartitionedTable | None]] = {
    "partitions": _already,
    "dask": _of_dask,
    "duckdb": _of_duckdb,
    "local": _of_large_files,
    "spark": _of_spark,
}
"""By name: what makes a table in partitions of what it recognises, and None of the rest."""


def opened(data: Any) -> PartitionedTable | None:
    """Return the partitions of what a user has in hand; None of what is to be read into memory."""
    return next((table for engine in ENGINES.values() if (table := engine(data)) is not None), None)
