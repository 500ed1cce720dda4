"""What our HTML pages have in common: one look, in light and dark, on paper and on a phone; nothing is fetched."""

from html import escape
from importlib.resources import files

__all__ = ["read_style", "show_section"]


def read_style() -> str:
    return files("laconic.pages").joinpath("page.css").read_text("utf-8")


def show_section(name: str, title: str, body: str) -> str:
    heading = f'<h2 id="{name}-title">{escape(title)}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">{heading}{body}</section>'
