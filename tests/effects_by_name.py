"""Every registered effect as it can be used: those on censored times must be given a time, in the unit of the outcome."""

from orthocal import RestrictedMeanTime, SurvivalProbability

AT_A_TIME = {
    "survival": lambda time: SurvivalProbability(time=time, grid=8),
    "rmst": lambda time: RestrictedMeanTime(horizon=time, grid=8),
}


def effect_by_name(name, time=1.0):
    """Return the name, or an effect at a time where it must have one."""
    return AT_A_TIME[name](time) if name in AT_A_TIME else name
