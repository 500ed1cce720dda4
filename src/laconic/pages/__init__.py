"""What our HTML pages have in common: one head and look, in light and dark, on paper and on a phone; charts drawn by a
script of their own. Nothing is fetched.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import NamedTuple

__all__ = [
    "Section",
    "hash_script",
    "list_colours",
    "read_charts",
    "read_style",
    "show_head",
    "show_page",
    "show_section",
]

# of a file; {}: the only script that may run
POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
    "img-src data:; script-src {}; base-uri 'none'; form-action 'none'\">\n"
)


class Section(NamedTuple):
    name: str
    title: str
    body: str  # HTML
    style: str = ""  # CSS that only such sections need


def show_page(
    *, brand: str, title: str, lead: str, sections: Sequence[Section], footer: str, after: str = "", script: str = ""
) -> str:
    """One file that needs no other. after: HTML behind all; script: the only one that may run."""
    styles = dict.fromkeys([read_style(), *(section.style for section in sections)])
    policy = POLICY.format(f"'{hash_script(script)}'" if script else "'none'")
    return Template(_read("page.html")).substitute(
        head=show_head(title, "".join(styles), policy),
        brand=escape(brand),
        title=escape(title),
        lead=escape(lead),
        links="".join(f'<a href="#{section.name}">{escape(section.title)}</a> ' for section in sections),
        body="\n".join(show_section(section.name, section.title, section.body) for section in sections),
        footer=escape(footer),
        after=after + (f"<script>{script}</script>" if script else ""),
    )


def show_head(title: str, style: str, more: str) -> str:
    """Up to the body. more: what only some pages have, in HTML."""
    return Template(_read("head.html")).substitute(title=escape(title), style=style, more=more)


def show_section(name: str, title: str, body: str) -> str:
    heading = f'<h2 id="{name}-title">{escape(title)}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">{heading}{body}</section>'


def hash_script(script: str) -> str:
    """As a Content-Security-Policy names the one script that it lets run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def read_style() -> str:
    return _read("page.css")


def read_charts() -> str:
    """The script that draws lines, strips, scatters, bars and heat maps; its head says from what."""
    return _read("charts.js")


def list_colours() -> list[str]:
    """Of methods one after the other, on paper."""
    return re.findall(r"--c\d: (#\w+);", read_style().partition("@media")[0])


def _read(name: str) -> str:
    return files("laconic.pages").joinpath(name).read_text("utf-8")
