"""A time span as people write it: 90s, 15m, 6h, 2d."""

from __future__ import annotations

import re

import click

from models.errors import ConfigError

__all__ = ["Span", "seconds"]

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds(text: str) -> float:
    """Turn "90s", "15m", "2h", "1.5d" into seconds; a bare number is seconds. Raises ConfigError for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip().lower())
    if not found:
        raise ConfigError(f"{text!r} is no time span: write 90s, 15m, 2h or 1d")
    return float(found[1]) * _UNITS_S[found[2] or "s"]


class Span(click.ParamType):
    """A time span on the command line."""

    name = "span"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return value if isinstance(value, float) else seconds(str(value))
        except ConfigError as error:
            self.fail(str(error), param, ctx)
