"""Which engine a table belongs to: what a user has in hand says it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orthocal.engines.protocol import PartitionedTable


def _of_dask(data: Any) -> PartitionedTable | None:
    """A dask.dataframe."""
    if not hasattr(data, "to_delayed"):
        return None
    from orthocal.engines.dask.table import DaskTable

    return DaskTable(data)


ENGINES: dict[str, Callable[[Any], PartitionedTable | None]] = {"dask": _of_dask}
"""By name: what makes a table in partitions of what it recognises, and None of the rest."""


def opened(data: Any) -> PartitionedTable | None:
    """Return the partitions of what a user has in hand; None of what is to be read into memory."""
    return next((table for engine in ENGINES.values() if (table := engine(data)) is not None), None)
