"""Files and DuckDB relations larger than memory, in one process and on all cores."""
