"""The answer in a word: believable, fixed, still wrong, or cannot tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from orthocal.assessment.wording import is_detected, story

if TYPE_CHECKING:
    from orthocal.assessment import Assessment
    from orthocal.verified import Verified

GOOD, BAD, OPEN = "good", "bad", "open"
COARSE = {"probability": 0.1}
"""Errors smaller than this must be visible, by unit, before silence means anything; else the predictions' own spread."""

Mark = tuple[str, str, str]
"""Tone, the word, and the sentences that go with it."""


def mark_of(assessment: Assessment) -> Mark:
    """Return the mark of one verdict."""
    if is_detected(assessment):
        return BAD, "Not believable", assessment.verdict
    if not can_tell(assessment):
        return OPEN, "Cannot tell", _too_small(assessment)
    return GOOD, "Believable", assessment.verdict


def mark_of_job(done: Verified) -> Mark:
    """Return the mark of a calibration: of what was found before it, and on rows the map never saw after it.

    A map is fitted on few rows, so a sharp test may see how it misses; it is called fixed if it helped and what is left may be 0.
    """
    if done.after is None or done.comparison is None:
        tone, word, sentences = mark_of(done.before)
        return tone, word, f"{sentences} The calibrated prediction is not verified on unseen rows."
    told = story(done.before, done.after, done.comparison)
    harmed = done.comparison.verdict == "harmed"
    if not is_detected(done.before):
        tone, word, sentences = mark_of(done.before)
        return tone, word, f"{sentences}\n{told}{' Leave the predictions as they are.' if harmed else ''}"
    helped = done.comparison.verdict == "improved" and done.after.interval[0] == 0
    if helped or not is_detected(done.after):
        return GOOD, "Fixed", f"Before: {done.before.verdict}\n{told}\nAfter: {done.after.verdict}"
    word = "Made worse: do not use the map" if harmed else "Still wrong"
    return BAD, word, f"{told}\nAfter: {done.after.verdict}"


def can_tell(assessment: Assessment) -> bool:
    """Return whether an error as large as the spread of the predictions would have been seen: else silence means nothing.

    Predictions that do not vary are compared with their own size. Units other than the effect's have a size of their own.
    """
    spread = float(np.std(assessment.predictions)) or float(np.abs(assessment.predictions).mean())
    return assessment.minimum_detectable_error <= COARSE.get(assessment.unit, spread)


def _too_small(assessment: Assessment) -> str:
    return (
        f"{assessment.rows:,} rows are too few: an error below {assessment.minimum_detectable_error:.4g} would have gone "
        f"unnoticed, and the predictions themselves vary by {np.std(assessment.predictions):.4g}. {assessment.verdict}"
    )
