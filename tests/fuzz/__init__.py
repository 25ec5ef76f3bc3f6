"""Seeded mutation fuzzers: of the doors for arrays, of studies, commands, map files, tables, names in SQL, and engines."""

from importlib import import_module

SHARES = {"api": 35, "studies": 15, "command line": 15, "map files": 12, "tables": 10, "sql names": 12, "engines": 1}
"""How cases are divided: engines take long."""


class _Fuzzers(dict):
    """Fuzzers by name, imported when they are needed."""

    def __missing__(self, name):
        module = {"command line": "command_line", "map files": "map_files", "sql names": "sql_names"}.get(name, name)
        self[name] = import_module(f"tests.fuzz.{module}")
        return self[name]


FUZZERS = _Fuzzers()
