"""Alerts as JSON lines: the values of the topic, safe to print."""

from __future__ import annotations

import msgspec

from streams.outputs import Options, Print, print_lines
from streams.outputs.printable import safe_json

__all__ = ["as_json"]


def as_json(options: Options) -> Print:
    """One object a line."""
    return lambda told: print_lines(safe_json(msgspec.json.encode(alert)) for alert, _ in told)
