"""Engines: where the rows are. Partitions in, summaries out; calibrators and verdicts that need only summaries."""
