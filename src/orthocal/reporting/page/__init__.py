"""One self-contained HTML page: records, drawings, one template; and the report of a verdict."""

from orthocal.reporting.page.report import report, report_page

__all__ = ["report", "report_page"]
