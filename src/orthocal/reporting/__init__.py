"""Reporting: verdicts as text, in a notebook, and on a page."""
