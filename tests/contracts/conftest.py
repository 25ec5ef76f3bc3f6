"""Of engines that are slow to start, one case of each law runs with the others; the rest with `make test-slow`."""

import pytest

PLAIN = {"how": "uneven", "weight": None, "groups": None, "ties": False, "case": "clean"}
"""The case of an engine that is slow to start that runs in `make test-more`."""


def pytest_collection_modifyitems(items):
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {})
        if given.get("engine") == "spark" and any(given.get(name, value) != value for name, value in PLAIN.items()):
            item.add_marker(pytest.mark.slow)
