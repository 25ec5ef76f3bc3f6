"""What a verdict shows is one list: text, notebook, page and JSON print the same figures."""

from html import escape

import numpy as np
import pytest

from orthocal import QuadraticLoss, assess, compare
from orthocal.reporting.figures import comparison_figures, figures_of, main_figures
from orthocal.reporting.page import report_page
from orthocal.reporting.page.render import render


@pytest.fixture
def judged(scored):
    prediction, loss = scored
    by = {"side": np.where(np.arange(len(prediction)) % 2, "left", "right")}
    return assess(prediction + 0.3, loss, by=by, cost=0.2, draws=100, random_state=0)


def test_text_notebook_page_and_json_print_the_same_figures(judged):
    text, notebook, page = judged.summary(), judged._repr_html_(), render(report_page(judged))
    lines = {" ".join(line.split()) for line in text.splitlines()}
    for line in figures_of(judged):
        assert " ".join(" ".join(line).split()) in lines
        assert escape(line.figure) in notebook
        assert escape(line.meaning) in notebook
    for line in main_figures(judged):
        assert escape(line.figure) in page
        assert escape(line.meaning) in page
    assert judged.to_dict()["figures"] == [line._asdict() for line in figures_of(judged)]


def test_a_comparison_prints_its_figures():
    loss = QuadraticLoss(np.array([1.0, 2.0, 0.0, 1.0]), np.ones(4))
    result = compare(np.full(4, 5.0), np.ones(4), loss, cost=2.0)
    assert result.to_dict()["figures"] == [line._asdict() for line in comparison_figures(result)]
    assert all(escape(line.figure) in result._repr_html_() for line in comparison_figures(result))


def test_columns_are_aligned(judged):
    lines = judged.summary().split("\n\n", 1)[1].splitlines()
    starts = {
        line.index(figure.figure) for line, figure in zip(lines, figures_of(judged), strict=True) if figure.figure
    }
    assert len(starts) == 1
