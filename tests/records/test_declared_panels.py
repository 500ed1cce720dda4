"""What methods say of how their notes are drawn."""

import pytest

from laconic.records import Panel


def test_a_panel_of_an_unknown_kind_is_refused_when_it_is_written() -> None:
    with pytest.raises(ValueError, match=r"(?s)“Loss” is of kind 'line'.*lines, clients"):
        Panel("line", "Loss", {"loss": "loss"})
