"""What an effect asks to be learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orthocal.arrays import Booleans, Floats


@dataclass(frozen=True, eq=False)
class Nuisance:
    """One regression of a target on the covariates.

    Parameters
    ----------
    name : str
        Its own name, under which it can be given or its learner chosen.
    role : str
        The kind of thing it is; a learner chosen for a role serves every nuisance of that role.
    target : array of shape (rows,)
    rows : boolean array of shape (rows,), optional
        The rows it is learnt from, for instance those of one treatment arm; all by default. It is predicted for all.
    is_probability : bool
        The target is 0 or 1: a classifier learns it.
    is_divisor : bool
        The formula divides by it and by one minus it: fitted values are clipped, given ones must be inside (0, 1).
    """

    name: str
    role: str
    target: Floats
    rows: Booleans | None = None
    is_probability: bool = False
    is_divisor: bool = False
