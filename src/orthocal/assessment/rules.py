"""What rules of treatment are worth, row by row: deciding by a prediction, and treating everyone alike."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.value import net_gain
from orthocal.losses import ArmScores

NO_ONE, EVERYONE = "treat no one", "treat everyone"


@singledispatch
def decided_gain(loss: Any, prediction: Floats, cost: Any) -> Floats:
    """Return the estimated gain of each row, net of the cost, where those predicted to gain more than it are treated."""
    return np.asarray((prediction > cost) * net_gain(loss, cost))


@decided_gain.register(ArmScores)
def _(scores: ArmScores, prediction: Floats, cost: Any) -> Floats:
    """Of several arms: each row gets the one that is predicted to gain most, if that is more than it costs."""
    rows, promised = np.arange(len(scores)), prediction - cost
    best = promised.argmax(axis=1)
    return np.asarray(scores.weight * (promised[rows, best] > 0) * (scores.gains - cost)[rows, best])


@singledispatch
def blanket_gains(loss: Any, cost: Any) -> dict[str, Floats]:
    """Return the estimated gain of each row, net of the cost, of the rules that are the same for everyone."""
    gain = net_gain(loss, cost)
    return {NO_ONE: np.zeros(len(gain)), EVERYONE: gain}


@blanket_gains.register(ArmScores)
def _(scores: ArmScores, cost: Any) -> dict[str, Floats]:
    """Of several arms: each of them for everyone."""
    gain = scores.weight[:, None] * (scores.gains - cost)
    every = {f"{arm} for everyone": gain[:, place] for place, arm in enumerate(scores.treatments)}
    return {NO_ONE: np.zeros(len(scores)), **every}
