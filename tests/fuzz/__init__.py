"""Seeded mutation fuzzers: of the doors for arrays, of studies, commands, map files, tables, names in SQL, and engines."""

from importlib import import_module

SHARES = {
    "api": 34,
    "array doors": 12,
    "studies": 13,
    "command line": 10,
    "map files": 12,
    "earlier verdicts": 4,
    "tables": 7,
    "sql names": 7,
    "engines": 1,
}
"""How cases are divided: a study takes a tenth of a second, most others a hundredth."""


class _Fuzzers(dict):
    """Fuzzers by name, imported when they are needed."""

    def __missing__(self, name):
        self[name] = import_module(f"tests.fuzz.{name.replace(' ', '_')}")
        return self[name]


FUZZERS = _Fuzzers()
