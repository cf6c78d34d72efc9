"""What a test needs and this machine lacks: a skip for users, a failure where CRISIS_REQUIRE_SERVICES is set (CI)."""

from __future__ import annotations

import os
from typing import NoReturn


class Missing(Exception):
    """A service that is not here; the message says what to install."""


def lacking(what: object, required: bool | None = None) -> NoReturn:
    """Skip, or fail where the service is required. `required` overrides CRISIS_REQUIRE_SERVICES."""
    import pytest  # here: tests.services.jars runs before anything is installed

    if required is None:
        required = os.environ.get("CRISIS_REQUIRE_SERVICES", "") not in ("", "0")
    if required:
        pytest.fail(f"needs {what}", pytrace=False)
    pytest.skip(f"needs {what}")
