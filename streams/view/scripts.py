"""The Lua programs beside this file: what must happen to several keys at once, Redis does in one step."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["script"]


def script(name: str) -> str:
    """The text of `<name>.lua`."""
    return (files("streams.view") / f"{name}.lua").read_text(encoding="utf-8")
