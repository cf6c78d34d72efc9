"""A child process that never outlives us, not even after kill -9.

A shell waits at a pipe of which we hold the other end; when that closes, because we close it or because we are gone,
it ends the child. Not PR_SET_PDEATHSIG: that fires when the *thread* that started the child ends, exists only on Linux
and needs a preexec_fn, which is unsafe beside threads. Not atexit: it does not run after a kill -9.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Child", "guarded"]

STOP_S = 10.0
GUARD = """
exec 3<&0
"$@" </dev/null 3<&- &
child=$!
(read -r _ <&3; kill "$child" 2>/dev/null) &
wait "$child"
status=$?
kill $! 2>/dev/null
exit $status
"""


def guarded(args: Sequence[str | Path]) -> list[str]:
    """What runs a command until standard input closes, or it ends by itself: with its status, as shells tell it.

    Give it a pipe for standard input, and a session of its own: the guard must live through what ends us.
    """
    return ["sh", "-c", GUARD, "sh", *map(str, args)]


class Child:
    """Starts at once; output goes to the file `log`. Its session is its own: Ctrl-C reaches only us."""

    def __init__(self, args: Sequence[str | Path], log: Path) -> None:
        self.log = log
        with log.open("wb") as out:
            self._shell = subprocess.Popen(
                guarded(args),
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Of its session, which is its process group too."""
        return self._shell.pid

    def ended(self) -> bool:
        """True if it is not running (any more)."""
        return self._shell.poll() is not None

    def last_words(self, lines: int = 12) -> str:
        """The end of its output."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:])

    def stop(self) -> None:
        """SIGTERM, and SIGKILL to whatever is left after `STOP_S`."""
        self._shell.stdin.close()
        try:
            self._shell.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._shell.pid, signal.SIGKILL)
            self._shell.wait()
