"""Dask: partitions of a ``dask.dataframe``, wherever the user's client is connected to."""
