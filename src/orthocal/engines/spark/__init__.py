"""Rows of a Spark frame: workers answer for their partitions, the driver receives summaries."""
