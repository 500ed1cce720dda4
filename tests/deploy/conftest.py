"""A test of real nodes that fails shows what they said last."""

from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    deployment = getattr(item, "funcargs", {}).get("deployment")
    if report.failed and deployment is not None:
        report.sections.append(("processes of the deployment", deployment.describe()))
    return report
