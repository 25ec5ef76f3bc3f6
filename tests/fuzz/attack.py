"""Cases by number: each is a few mutations of something that works; one that fails is made as small as it can be."""

import contextlib
import json
import multiprocessing
import os
import time
import zlib
from collections import Counter
from queue import Empty

import numpy as np
from joblib import parallel_config

from tests.fuzz.judgement import described


def case_of(fuzzer, seed, number):
    """Return the mutations of a case: plain words and numbers, by which it can be done again."""
    rng = np.random.default_rng([seed, number, zlib.crc32(fuzzer.NAME.encode())])
    return fuzzer.mutations(rng)


def attempted(fuzzer, mutations):
    """Return what is wrong with a case, or None; a fault of the fuzzer itself is said as such."""
    try:
        with parallel_config(backend="sequential"):  # pools of processes are not attacked, and can wait for each other
            return fuzzer.attempt([tuple(one) for one in mutations])
    except Exception as error:  # noqa: BLE001
        return f"the fuzzer itself fails: {described(error)}"


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


def _worker(name, seed, numbers, until, queue):
    from tests.fuzz import FUZZERS

    fuzzer = FUZZERS[name]
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):  # noqa: PTH123
        for found in failures(fuzzer, seed, numbers, until):
            queue.put((name, *found))


def divided(cases, shares):
    """Return how many cases each fuzzer has; they sum to what was asked for."""
    total, before, found = sum(shares.values()), 0, {}
    for name, share in shares.items():
        found[name] = round(cases * (before + share) / total) - round(cases * before / total)
        before += share
    return found


def run(cases, seed, seconds, shares, processes=2):
    """Try all fuzzers; print what fails with how to do it again, and return whether every case was tried and none failed."""
    failed, tried, started = Counter(), Counter(), time.monotonic()
    for name, own in divided(cases, shares).items():
        for found in _found(name, seed, own, started + seconds, processes):
            if found[1] is None:
                tried[name] += found[2]
            else:
                failed[name] += 1
                report(seed, *found)
        print(f"{name}: {tried[name]:,} of {own:,} cases, {failed[name]} failed", flush=True)
    done, wrong = sum(tried.values()), sum(failed.values())
    print(f"{done:,} of {cases:,} cases, {wrong} failed, {time.monotonic() - started:.0f} seconds, seed {seed}")
    if done < cases:
        print(
            f"NOT PASSED: {cases - done:,} cases were not tried; the bound is {seconds:.0f} seconds. Try fewer cases."
        )
    return done == cases and not wrong


def _found(name, seed, own, until, processes):
    """Yield what the workers of a fuzzer find; one that dies ends, and its cases are not counted."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    parts = [range(k, own, processes) for k in range(processes)]
    workers = [context.Process(target=_worker, args=(name, seed, part, until, queue)) for part in parts]
    for worker in workers:
        worker.start()
    while True:
        running = any(worker.is_alive() for worker in workers)
        try:
            yield queue.get(timeout=0.5)
        except Empty:
            if not running:
                break
    for worker in workers:
        worker.join()
        if worker.exitcode:
            print(f"{name}: a process ended with code {worker.exitcode}, and its cases do not count", flush=True)


def report(seed, name, number, mutations, problem):
    """Print a case that failed, as small as it is, and how to do it again."""
    again = f"python -m tests.fuzz --fuzzer {name!r} --seed {seed} --case {number}"
    print(f"FAILED {name} {number}: {problem}\n  {json.dumps(mutations)}\n  {again}", flush=True)
