"""Runs as tables and as one page: reads the records in run folders and nothing else."""

from laconic.report.page import list_folders, write_report
from laconic.report.run import Run, read_run
from laconic.report.tables import Group, compare_table, describe, format_bytes, group_runs, render

__all__ = [
    "Group",
    "Run",
    "compare_table",
    "describe",
    "format_bytes",
    "group_runs",
    "list_folders",
    "read_run",
    "render",
    "write_report",
]
