"""Speed as ratios against the work that must be done anyway and against peers. Absolute times mean nothing across machines."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import decisions
import floors
import peers
import pipelines
import timing

RESULTS = Path(__file__).with_name("results.json")


def main() -> None:
    """Print every ratio beside its target and keep them in results.json."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--full", action="store_true", help="also what takes a peer many minutes")
    asked.add_argument("--only", default="", help="benchmarks whose name contains this")
    options = asked.parse_args()
    modules = (floors, decisions, peers, pipelines)
    chosen = {name: one for module in modules for name, one in module.BENCHMARKS.items()}
    chosen |= floors.FULL if options.full else {}
    results = json.loads(RESULTS.read_text()).get("ratios", {}) if options.only and RESULTS.exists() else {}
    missed = []
    for name, (work, target) in chosen.items():
        if options.only not in name:
            continue
        try:
            value = work()
        except timing.Skipped as reason:
            results[name] = {"skipped": str(reason)}
            print(f"  skipped   ({reason})   {name}", flush=True)
            continue
        results[name] = {"value": round(value, 3), "at most": target}
        missed += [name] if value > target else []
        print(f"{value:8.3f}   (at most {target})   {name}", flush=True)
    libraries = {library: version(library) for library in ("numpy", "scipy", "scikit-learn", "pyarrow")}
    record = {"python": platform.python_version(), "libraries": libraries, "ratios": results}
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")
    if missed:
        sys.exit(f"missed: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
