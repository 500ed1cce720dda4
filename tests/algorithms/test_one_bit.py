"""Settings of training that a method of one bit cannot heed are refused, in place of having no effect."""

import re

import pytest

from laconic.runs.config import ConfigError, read_config

UNUSED = {
    "pfed1bs": ("up", "down"),
    "obda": ("up", "down"),
    "obcsaa": ("up",),
    "zsignfed": ("up",),
    "eden": ("up",),
    "fedbat": ("up", "momentum"),
    "bifl-full": ("momentum", "decay"),
    "bifl-updown": ("up", "down", "momentum", "decay"),
    "bifl-ml": ("up", "down", "momentum", "decay"),
}
OTHER = {"up": '"int8"', "down": '"int8"', "momentum": "0.5", "decay": "0.01"}


@pytest.mark.parametrize("method", UNUSED)
@pytest.mark.parametrize("name", OTHER)
def test_a_setting_without_effect_is_refused_and_others_are_taken(method: str, name: str) -> None:
    settings = [f"method.name={method}", f"method.training.{name}={OTHER[name]}"]
    if name not in UNUSED[method]:
        read_config(None, settings)
        return
    words = f"--set method.training.{name}  method.training.{name} = {OTHER[name]} must be left at "
    with pytest.raises(ConfigError, match=re.escape(words)):
        read_config(None, settings)
