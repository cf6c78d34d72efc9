"""What we know about text and vectors: pure functions and structs, no Faust, no clock, no network.

`from models import open_pipeline` is the way in for other programs: see models/pipeline.py.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models.pipeline import open_pipeline

__all__ = ["open_pipeline"]


def __getattr__(name: str) -> Any:
    """`open_pipeline`, imported when it is asked for: `import models.errors` loads no encoder."""
    if name == "open_pipeline":
        from models.pipeline import open_pipeline

        return open_pipeline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
