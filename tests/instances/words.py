"""Texts as tests read them."""

from __future__ import annotations


def flat(text: str) -> str:
    """The text without its line breaks."""
    return " ".join(text.split())
