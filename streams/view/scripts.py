"""The Lua programs beside this file: what must happen to several keys at once, Redis does in one step."""

from __future__ import annotations

from importlib.resources import files

import msgspec

__all__ = ["as_text", "packed", "script"]

packed = msgspec.msgpack.Encoder().encode
"""Rows for a program as one argument (`cmsgpack.unpack` there): each argument by itself costs redis-py 2 to 3 µs."""


def as_text(value: bytes) -> msgspec.Raw:
    """Bytes as a part of what is `packed`: Redis reads msgpack's text, whatever it holds, and not its binary."""
    return msgspec.Raw(b"\xdb" + len(value).to_bytes(4) + value)


def script(name: str) -> str:
    """The text of `<name>.lua`."""
    return (files("streams.view") / f"{name}.lua").read_text(encoding="utf-8")
