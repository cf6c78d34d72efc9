"""Where a source goes on after a restart: one small file, replaced atomically, never ahead of the broker."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from models.errors import ConfigError, ServiceError
from streams.ingest.writer import Then

__all__ = ["Cursor"]

EVERY_S = 0.5  # a restart repeats at most so much; repeats are harmless


class Cursor:
    """A position in a source. `advance` gives the callback that moves it once a line is acknowledged."""

    def __init__(self, path: str | Path | None) -> None:
        """Without a path nothing is kept. Raises ConfigError if the file cannot be read, or not be written later."""
        self._path = Path(path) if path else None
        self._lock = threading.Lock()
        self._saved_at = 0.0
        self.value: str | None = None
        self._saved: str | None = None
        if self._path is None:
            return
        try:
            if self._path.exists():
                self.value = self._saved = self._path.read_text(encoding="utf-8").strip() or None
            self._beside.touch()  # now, not after the first posts are sent
            self._beside.unlink()
        except UnicodeDecodeError as error:
            raise ConfigError(f"cannot read the cursor {self._path}: {error}; delete it to start anew") from error
        except OSError as error:
            raise ConfigError(
                f"cannot keep the cursor {self._path} ({error.strerror}): name a file in a folder that is "
                "there and may "
                "be written to"
            ) from error

    @property
    def _beside(self) -> Path:
        return self._path.with_name(self._path.name + ".new")

    def advance(self, value: str) -> Then:
        """For `FrameWriter.write(then=…)`."""

        def then(error: ServiceError | None) -> None:
            if error is None:
                self.value = value
                if time.monotonic() - self._saved_at >= EVERY_S:
                    self.save()

        return then

    def save(self) -> None:
        """Write the newest acknowledged position. Called at the end too. Raises ServiceError if the disk refuses."""
        with self._lock:
            value = self.value
            if self._path is None or value is None or value == self._saved:
                return
            try:
                with self._beside.open("w", encoding="utf-8") as file:
                    file.write(value + "\n")
                    file.flush()
                    os.fsync(file.fileno())
                self._beside.replace(self._path)
            except OSError as error:
                raise ServiceError(f"cannot keep the cursor {self._path}: {error.strerror}") from error
            self._saved, self._saved_at = value, time.monotonic()
