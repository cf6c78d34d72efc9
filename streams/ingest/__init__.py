"""`crisis ingest SOURCE` (commands/ingest.py): where posts come from. One file per source; all write frames through
`writer.FrameWriter`.
"""

from __future__ import annotations

from streams.config import sources

__all__ = ["SOURCES"]

SOURCES = {name: (source.place, source.told) for name, source in sources.SOURCES.items()}  # as a group of commands
