"""Engines whose rows come in partitions: one code for all, which asks a table for summaries of its partitions."""
