"""How strong unmeasured confounding would have to be to overturn a verdict: in numbers and in a sentence (mathematics 10.6)."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from orthocal.arrays import Floats
from orthocal.assessment.omitted_variable import ConfoundingScale, average_path, error_path, robustness_value
from orthocal.assessment.parts import Robustness
from orthocal.assessment.records import Assessment, Settings
from orthocal.formats import number
from orthocal.losses import Loss, Origin, QuadraticLoss

BY_DESIGN = (
    "Treatment was assigned with known probabilities, so no unmeasured confounding can explain an error; if they were estimated, "
    "leave the propensity out."
)
"""Why there is no sensitivity analysis of an experiment."""
BOTH = "both of the outcome's residual variance (given covariates and treatment) and of the variance of the treatment weights"


def is_by_design(origin: Origin | None) -> bool:
    """Return whether the probabilities of treatment were given, not learnt; an instrument's say nothing of its exclusion."""
    return origin is not None and origin.learners.get("propensity") == "given"


def robustness_to_bias(interval: tuple[float, float], origin: Origin | None) -> Robustness:
    """Return how large a bias would have to be to overturn the verdict, whatever it comes from.

    A bias b(X) in the estimated effects moves every bin's mean by the mean of b there, hence the error by at most the root mean
    square of b given the prediction.
    """
    if is_by_design(origin):
        return Robustness(text=BY_DESIGN)
    low, high = interval
    if low > 0:
        shift = f"shifts the estimated effects by {number(low)} (root mean square)"
        return Robustness(text=f"Unmeasured confounding that {shift} could explain all of this error.", bias=low)
    hidden = f"if it shifts them by {number(high)}, an error of {number(2 * high)} would fit the data"
    return Robustness(text=f"Unmeasured confounding of the estimated effects could hide an error: {hidden}.", bias=high)


def with_robustness(
    verdict: Assessment, prediction: Floats, loss: Loss, scale: ConfoundingScale | None, settings: Settings
) -> Assessment:
    """Return the verdict with the strength of an omitted variable that would overturn it; rows sorted by prediction."""
    if scale is None or verdict.sensitivity.bias is None:
        return verdict
    loss = cast("QuadraticLoss", loss)  # that of a CATE, which alone has a scale
    path = error_path(prediction, loss, scale, 1 if verdict.is_constant else settings.bins)
    products = path.product_to_zero(verdict.level), average_path(prediction, loss, scale, verdict.level).product_to_zero
    values = [robustness_value(product) if product > 0 else None for product in products]
    return replace(verdict, sensitivity=robustness_in_words(verdict.interval, *values))


def robustness_in_words(interval: tuple[float, float], error: float | None, average: float | None) -> Robustness:
    """Return robustness values, of the error and of the average effect, with a sentence about each."""
    bias = robustness_to_bias(interval, None)
    text = " ".join([*_about_error(error, bias.text), *_about_average(error, average)])
    return replace(bias, text=text, error=error, average=average)


def _about_error(value: float | None, otherwise: str) -> list[str]:
    if value is None:
        return [otherwise]
    return [f"An unmeasured confounder would have to explain {value:.1%} {BOTH} to account for all of this error."]


def _about_average(error: float | None, value: float | None) -> list[str]:
    if value is None:
        return ["The sign of the average effect is not certain, even without it."]
    if error is not None:
        return [f"One that explains {value:.1%} of both could change the sign of the average effect."]
    return [f"A confounder that explains {value:.1%} {BOTH} could change the sign of the average effect."]
