"""Formulas that several effects share: arrays in, arrays out."""

from __future__ import annotations

from orthocal.arrays import Booleans, Floats


def doubly_robust_mean(y: Floats, got: Booleans, pi: Floats, mu: Floats) -> Floats:
    r"""Pseudo-outcome of the mean outcome under one level, :math:`\mu + \frac{1\{got\}}{\pi}(y - \mu)` (mathematics 3.1)."""
    return mu + got / pi * (y - mu)


def pseudo_outcome(
    y: Floats, treated: Booleans, control: Booleans, pi1: Floats, pi0: Floats, mu1: Floats, mu0: Floats
) -> Floats:
    r"""Doubly robust pseudo-outcome of a contrast of two levels; two arms have :math:`\pi_0 = 1 - \pi_1` (mathematics 3.1).

    .. math:: \chi = \mu_1 - \mu_0 + \frac{1\{a = 1\}}{\pi_1}(y - \mu_1) - \frac{1\{a = 0\}}{\pi_0}(y - \mu_0)
    """
    return doubly_robust_mean(y, treated, pi1, mu1) - doubly_robust_mean(y, control, pi0, mu0)
