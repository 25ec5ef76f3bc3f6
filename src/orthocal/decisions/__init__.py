"""Decisions: what rules made from predictions are worth, with costs and budgets, and which one to use."""

from orthocal.decisions.policy import policy
from orthocal.decisions.records import BudgetCurve, Policy, Ratio, Rule

__all__ = ["BudgetCurve", "Policy", "Ratio", "Rule", "policy"]
