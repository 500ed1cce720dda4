"""Runs as tables and as one page: reads the records in run folders and nothing else."""

from laconic.report.page import write_report
from laconic.report.run import Run, read_run
from laconic.report.tables import compare_table, describe, format_bytes, render

__all__ = ["Run", "compare_table", "describe", "format_bytes", "read_run", "render", "write_report"]
