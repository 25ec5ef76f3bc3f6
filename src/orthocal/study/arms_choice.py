"""A choice among models of several arms: losses are summed over the contrasts with the control."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from sklearn.base import clone

from orthocal.arrays import Floats, Integers
from orthocal.assessment.confidence_set import DRAWS
from orthocal.assessment.records import Settings
from orthocal.assessment.rivals import Entry, leaderboard_of
from orthocal.calibrators.joint import JointCalibrator
from orthocal.losses import ArmScores
from orthocal.study.choice import Choice, require_held_out, require_names
from orthocal.study.choice_words import AVERAGE, NO_EFFECT, calibrated_name


def choice_among_arms(
    scores: ArmScores,
    predictions: Mapping[str, Floats],
    calibrator: JointCalibrator,
    sides: tuple[Integers, Integers],
    settings: Settings,
) -> Choice:
    """Calibrate the predictions of all arms together on the first rows, and judge all rivals on the others.

    A rival is judged by its loss, summed over the contrasts with the control; verdicts on each contrast are those of `assess`.
    """
    fitted, judged = sides
    require_names(predictions)
    require_held_out(len(fitted) < len(scores))
    averages = np.average(scores.gains[fitted], axis=0, weights=scores.weight[fitted])
    maps = {name: clone(calibrator).fit(values[fitted], scores[fitted]) for name, values in predictions.items()}
    entries = [
        Entry(AVERAGE, np.tile(averages, (len(judged), 1))),
        Entry(NO_EFFECT, np.zeros((len(judged), len(averages)))),
        *_entries(maps, predictions, judged),
    ]
    board = leaderboard_of(entries, scores[judged], settings, len(judged) / len(scores))
    return Choice(
        rivals=board.rivals,
        comparisons=board.comparisons,
        rules=board.rules,
        average=dict(zip(map(str, scores.treatments), averages.tolist(), strict=True)),
        cost=settings.cost,
        level=settings.level,
        draws=DRAWS,
        unit=scores.unit,
        rows=len(judged),
        fitted_rows=len(fitted),
        reasons={name: map_.reason_ for name, map_ in maps.items() if map_.reason_},
    )


def _entries(
    maps: Mapping[str, JointCalibrator], predictions: Mapping[str, Floats], judged: Integers
) -> Iterator[Entry]:
    for name, values in predictions.items():
        yield Entry(name, values[judged], name, False)
        yield Entry(calibrated_name(name), maps[name].predict(values[judged]), name, True)
