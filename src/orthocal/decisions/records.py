"""The frozen records of a policy: what rules are worth, and which one to use."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from orthocal.arrays import Floats
from orthocal.assessment.parts import Check, Coefficient
from orthocal.assessment.records import as_plain
from orthocal.decisions.allocation import Allocation
from orthocal.decisions.people import People
from orthocal.errors import OrthocalError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Ratio:
    """A ratio of two means with Fieller's interval.

    Parameters
    ----------
    value : float or None
        None where nothing can be divided by.
    interval : (float, float) or None
        None where it has no end.
    note : str
        Why there is none.
    """

    value: float | None
    interval: tuple[float, float] | None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a rule is worth: treating no one, everyone with the same arm, or by a prediction.

    Parameters
    ----------
    name : str
    value : Coefficient
        What the rule is judged by, per person and over treating no one: the gain less the cost; within a budget the gain.
    gain : Coefficient
        Estimated gain per person over treating no one, before costs.
    cost : float
        Mean cost per person.
    shares : dict of str to float
        Share of people that get each arm.
    promised : float or None
        Mean predicted gain, before costs; of rules by prediction, as what follows.
    excess : Coefficient or None
        Promised minus estimated gain: above 0 the rule promises too much (winner's curse).
    over_blanket : Coefficient or None
        Value minus that of the best blanket rule, paired, with an interval that allows for the choice among blanket rules, and
        among predictions.
    blankets : tuple of str
        The best blanket rule, and those that may be as good (within one and a half standard errors).
    return_on_spend, cost_per_gain : Ratio or None
        Gain per unit of incremental spend, or cost, and its inverse; None where nothing costs anything.
    """

    name: str
    value: Coefficient
    gain: Coefficient
    cost: float
    shares: dict[str, float]
    promised: float | None = None
    excess: Coefficient | None = None
    over_blanket: Coefficient | None = None
    blankets: tuple[str, ...] = ()
    return_on_spend: Ratio | None = None
    cost_per_gain: Ratio | None = None

    @property
    def share_treated(self) -> float:
        """Share of people that get any treatment."""
        return sum(self.shares.values())


@dataclass(frozen=True, eq=False, kw_only=True)
class BudgetCurve:
    """What rules gain over the budget.

    Parameters
    ----------
    budget : array
        Mean cost per person.
    rules : dict of str to dict of str to array
        For each prediction gain (estimated, per person), standard_error, lower and upper (pointwise interval), band_lower and
        band_upper (holds at all budgets at once), predicted (the predicted gain) and share_treated.
    differences : dict of str to dict of str to array
        For each pair "b - a" the same of the difference in gain, paired.
    blankets : dict of str to array
        Gain of each arm for everyone, or for as many people, drawn at random, as the budget allows.
    """

    budget: Floats
    rules: dict[str, dict[str, Floats]]
    differences: dict[str, dict[str, Floats]]
    blankets: dict[str, Floats]


@dataclass(frozen=True, eq=False, kw_only=True)
class Policy:
    """Which rule to use: no one, everyone with one arm, or by a prediction.

    Parameters
    ----------
    values : dict of str to Rule
        Blanket rules first, then one for each prediction.
    baseline : Coefficient
        Mean outcome if no one is treated.
    best_blanket : str
    recommendation : str
        Which rule to use, or that these rows do not decide. Of several predictions it speaks of that with the largest value.
    arms : tuple of str
        Treatments, without the control.
    budget : float or None
        Mean cost per person that may be spent.
    curve : BudgetCurve or None
        When a budget was given.
    allocations : dict of str to Allocation
        Who gets which arm by each prediction.
    level : float
        Confidence level of the intervals.
    rows : int
    checks : tuple of Check
        Of data and predictions, where a `Study` made the policy.
    note : str
        Within a budget in partitions: by how much gains can be off, and where the intervals come from.
    people : People or None
        The rows, for tables; not in `to_dict`. None where rows are in partitions.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal import ArmScores, policy
    >>> rng = np.random.default_rng(0)
    >>> effect = 0.2 + rng.standard_normal((2000, 1))
    >>> values = np.column_stack([np.zeros(2000), effect]) + rng.standard_normal((2000, 2))
    >>> decision = policy(ArmScores(arms=("none", "mail"), values=values, weight=np.ones(2000)), {"tau": effect})
    >>> decision.best_blanket, round(decision.values["tau"].share_treated, 1)
    ('everyone', 0.6)
    """

    values: dict[str, Rule]
    baseline: Coefficient
    best_blanket: str
    recommendation: str
    arms: tuple[str, ...]
    budget: float | None
    curve: BudgetCurve | None
    level: float
    rows: int
    checks: tuple[Check, ...] = ()
    note: str = ""
    allocations: dict[str, Allocation] = field(default_factory=dict, repr=False)
    people: People | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.summary()

    @property
    def predictions(self) -> tuple[str, ...]:
        """Names of the predictions."""
        return tuple(name for name, rule in self.values.items() if rule.over_blanket is not None)

    def table(self, rule: str, bins: int = 10) -> dict[str, Floats]:
        """Return people in bins from the most promising down: predicted and estimated gain, cumulative gain and cost.

        See `orthocal.decisions.shares.top_share_table`.
        """
        from orthocal.decisions.shares import top_share_table

        if self.people is None:
            raise OrthocalError(
                "A table of top shares must have rows in memory; those of this policy are in partitions. Make it of a sample."
            )
        return top_share_table(self.people, rule, bins, level=self.level, by_ratio=self.budget is not None)

    def summary(self) -> str:
        """Return the recommendation and the numbers behind it as text."""
        from orthocal.reporting.policies import policy_summary

        return policy_summary(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the rows as plain numbers, strings, lists and dicts, ready for JSON."""
        from orthocal.reporting.policies import policy_figures

        plain = as_plain({one.name: getattr(self, one.name) for one in fields(self) if one.repr})
        return {**plain, "figures": [line._asdict() for line in policy_figures(self)]}

    def report(self, path: str | Path, *, title: str | None = None, how: Mapping[str, str] | None = None) -> None:
        """Write one self-contained HTML page: the recommendation, what every rule is worth, and gains over the budget.

        Where script is allowed, a slider walks over budgets. `how` is what else another person needs in order to repeat it.
        """
        from orthocal.reporting.page.policies import policy_report

        policy_report(self, path, title, how)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what each rule is worth, with intervals."""
        from orthocal.plots import policy_values

        return policy_values(self, ax=ax)
