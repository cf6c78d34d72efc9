"""What pydantic would take and we do not, and its complaints in our words."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterator
from dataclasses import is_dataclass
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import ErrorDetails

from models.errors import ConfigError

__all__ = ["as_meant", "leaves", "message", "plain_section"]


def as_meant(value: Any, kind: Any) -> Any:
    """A value as it was given for a setting of this kind. Raises ValueError for `true` in the place of a number, which
    pydantic takes for 1."""
    kinds = {kind, *get_args(kind)}
    if value == "" and NoneType in kinds:  # as compose files leave a variable that nobody set
        return None
    if isinstance(value, bool) and kinds & {int, float}:
        raise ValueError(f"is {str(value).lower()} and should be a number")
    return value


def plain_section(kind: type) -> WrapValidator:
    """For a section that is a plain dataclass of `models/`: what it refuses is told with its place, each number is a
    finite one, and a list may stand in a variable."""
    kinds = get_type_hints(kind)

    def check(given: Any, build: ValidatorFunctionWrapHandler) -> Any:
        if isinstance(given, dict):
            given = {name: _read(name, value, kinds.get(name)) for name, value in given.items()}
        try:
            made = build(given)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        for name in kinds:
            if isinstance(value := getattr(made, name), float) and not math.isfinite(value):
                raise ValueError(f"{name} is {value}: not a finite number")
        return made

    return WrapValidator(check)


def _read(name: str, value: Any, kind: Any) -> Any:
    if get_origin(kind) is tuple and isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value  # refused as no list
    try:
        return as_meant(value, kind)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from error


def message(error: ErrorDetails, settings: Any) -> str:
    """What is wrong with one setting, in our words where pydantic's are those of a programmer."""
    *sections, name = map(str, error["loc"])
    if error["type"] in ("model_type", "dataclass_type"):
        return f"is a section: write [{'.'.join([*sections, name])}], and its settings below"
    if error["type"] == "tuple_type":
        return "should be a list, such as [3.0, 6.0]"
    if error["type"] not in ("extra_forbidden", "unexpected_keyword_argument"):
        return error["msg"].removeprefix("Value error, ")
    inside = settings
    for section in sections:
        inside = _fields(inside)[section]
    meant = difflib.get_close_matches(name, _fields(inside), 1)
    return "no such setting; " + (f"did you mean {meant[0]}?" if meant else f"there are: {', '.join(_fields(inside))}")


def leaves(section: Any) -> Iterator[str]:
    """Every setting below, with a dot between section and setting."""
    for name, kind in _fields(section).items():
        yield from ([f"{name}.{below}" for below in leaves(kind)] or [name])


def _fields(section: Any) -> dict[str, Any]:
    """The settings of a section and what each is, in either of the two ways a section is written."""
    if is_dataclass(section):
        return get_type_hints(section)
    return {name: field.annotation for name, field in getattr(section, "model_fields", {}).items()}
