"""Solvers: the map of one class that minimises the summed loss, exact where the loss allows it.

Each is a ``functools.singledispatch`` function of the loss; a loss with a short cut registers its own version.
"""

from orthocal.solvers.affine import affine, shift
from orthocal.solvers.constants import constants
from orthocal.solvers.monotone import monotone
from orthocal.solvers.sigmoid import sigmoid
from orthocal.solvers.spline import spline

__all__ = ["affine", "constants", "monotone", "shift", "sigmoid", "spline"]
