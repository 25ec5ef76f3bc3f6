"""Run the fuzzers: ``python -m tests.fuzz --cases 20000 --seed 1``, or one case again."""

import argparse
import sys

from tests.fuzz import FUZZERS, SHARES
from tests.fuzz.attack import attempted, case_of, run, shrunk


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--fuzzer", choices=list(SHARES))
    parser.add_argument("--case", type=int)
    given = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")
    if given.case is None:
        shares = SHARES if given.fuzzer is None else {given.fuzzer: 1}
        return run(given.cases, given.seed, given.seconds, shares, given.processes)
    fuzzer = FUZZERS[given.fuzzer]
    mutations = case_of(fuzzer, given.seed, given.case)
    problem = attempted(fuzzer, mutations)
    few = mutations if problem is None else shrunk(fuzzer, mutations)
    print(f"{problem or 'nothing is wrong'}\n{few}")
    return problem is None


if __name__ == "__main__":
    sys.exit(not main())
