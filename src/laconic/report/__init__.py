"""Runs as tables and as one page: reads the records in run folders and nothing else."""

from laconic.report.page import build_page, read_runs, write_report
from laconic.report.run import Run, read_run
from laconic.report.tables import Group, compare_table, describe, format_bytes, group_runs, render

__all__ = [
    "Group",
    "Run",
    "build_page",
    "compare_table",
    "describe",
    "format_bytes",
    "group_runs",
    "read_run",
    "read_runs",
    "render",
    "write_report",
]
