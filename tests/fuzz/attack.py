"""Cases by number: each is a few mutations of something that works; one that fails is made as small as it can be."""

import json
import multiprocessing
import os
import sys
import time
import zlib
from collections import Counter

import numpy as np

PROCESSES = 2


def case_of(fuzzer, seed, number):
    """Return the mutations of a case: plain words and numbers, by which it can be done again."""
    rng = np.random.default_rng([seed, number, zlib.crc32(fuzzer.NAME.encode())])
    return fuzzer.mutations(rng)


def attempted(fuzzer, mutations):
    """Return what is wrong with a case, or None; a fault of the fuzzer itself is said as such."""
    return fuzzer.attempt([tuple(one) for one in mutations])


def shrunk(fuzzer, mutations):
    """Return as few of the mutations as still fail."""
    kept = list(mutations)
    for one in list(kept):
        fewer = [other for other in kept if other is not one]
        if attempted(fuzzer, fewer) is not None:
            kept = fewer
    return kept


def failures(fuzzer, seed, numbers, until=float("inf")):
    """Yield (number, shrunk mutations, problem) of cases that fail, and at the end how many were tried."""
    done = 0
    for number in numbers:
        if time.monotonic() > until:
            break
        done += 1
        mutations = case_of(fuzzer, seed, number)
        problem = attempted(fuzzer, mutations)
        if problem is not None:
            few = shrunk(fuzzer, mutations)
            yield number, few, attempted(fuzzer, few) or problem
    yield None, done, None


def _worker(name, seed, start, step, cases, seconds, queue):
    from tests.fuzz import FUZZERS

    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
        sys.stderr = nowhere
        for found in failures(FUZZERS[name], seed, range(start, cases, step), time.monotonic() + seconds):
            queue.put((name, *found))
    queue.put(None)


def run(cases, seed, seconds, shares):
    """Try all fuzzers on two processes; print what fails with how to do it again, and return how many failed."""
    failed, tried, started = Counter(), Counter(), time.monotonic()
    total = sum(shares.values())
    context = multiprocessing.get_context("spawn")
    for name, share in shares.items():
        own = max(1, round(cases * share / total))
        left = seconds - (time.monotonic() - started)
        queue = context.Queue()
        workers = [
            context.Process(target=_worker, args=(name, seed, k, PROCESSES, own, left, queue)) for k in range(PROCESSES)
        ]
        for worker in workers:
            worker.start()
        running = PROCESSES
        while running:
            found = queue.get()
            if found is None:
                running -= 1
            elif found[1] is None:
                tried[name] += found[2]
            else:
                failed[name] += 1
                report(seed, *found)
        for worker in workers:
            worker.join()
        print(f"{name}: {tried[name]:,} of {own:,} cases, {failed[name]} failed", flush=True)
    print(f"{sum(tried.values()):,} cases, {sum(failed.values())} failed, {time.monotonic() - started:.0f} seconds")
    return sum(failed.values()) + (sum(tried.values()) < cases * 0.99)


def report(seed, name, number, mutations, problem):
    """Print a case that failed, as small as it is, and how to do it again."""
    again = f"python -m tests.fuzz --fuzzer {name} --seed {seed} --case {number}"
    print(f"FAILED {name} {number}: {problem}\n  {json.dumps(mutations)}\n  {again}", flush=True)
