"""Child processes of the demo: started in order, watched, stopped in reverse order, and gone when we are killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from models.errors import ServiceError
from streams.embedded.child import guarded

__all__ = ["Children"]

STOP_S = 8.0  # a worker commits and leaves its group before it goes


class Children:
    """An async context: whatever happens inside, every child is gone afterwards."""

    def __init__(self, log_dir: Path) -> None:
        self.log_dir = log_dir
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self._ended: asyncio.Queue[str] = asyncio.Queue()
        self._watchers: set[asyncio.Task] = set()
        self._stopping = False

    async def __aenter__(self) -> Children:
        self.log_dir.mkdir(parents=True, exist_ok=True)
        return self

    async def start(
        self, name: str, args: Sequence[str], env: Mapping[str, str], restart_on: int | None = None
    ) -> None:
        """Run `python -m …args`; output goes to `<log_dir>/<name>.log`. Ends with status `restart_on`: starts anew.

        Once all are being stopped, nothing is started.
        """
        if self._stopping:
            return
        with (self.log_dir / f"{name}.log").open("ab") as log:
            # A session of its own: Ctrl-C reaches only us, and we stop the children in order.
            child = await asyncio.create_subprocess_exec(
                *guarded([sys.executable, "-m", *args]),
                env={**os.environ, **env},
                stdout=log,
                stderr=log,
                stdin=asyncio.subprocess.PIPE,  # the guard ends the child when it closes
                start_new_session=True,
            )
        if self._stopping:  # the stop came while it was being started, and does not know of it
            await _kill(child)
            return
        self._running[name] = child
        again = (name, args, env, restart_on)
        watcher = asyncio.create_task(self._watch(name, child, again))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)

    async def _watch(self, name: str, child: asyncio.subprocess.Process, again: tuple) -> None:
        status = await child.wait()
        if self._running.get(name) is child:
            if status == again[-1]:
                await self.start(*again)
            else:
                self._ended.put_nowait(name)

    def expect_end(self, name: str) -> asyncio.subprocess.Process:
        """The child, no longer watched: its end is no accident."""
        return self._running.pop(name)

    async def any_death(self) -> None:
        """Return never; raise ServiceError with the end of its log as soon as a child ends by itself."""
        name = await self._ended.get()
        log = (self.log_dir / f"{name}.log").read_text("utf-8", "replace").strip().splitlines()[-12:]
        raise ServiceError(f"{name} ended with status {self._running[name].returncode}:\n  " + "\n  ".join(log))

    async def __aexit__(self, *_: object) -> None:
        self._stopping = True
        for name in reversed(list(self._running)):
            child = self._running.pop(name)
            if child.returncode is None:
                child.stdin.close()
                try:
                    await asyncio.wait_for(child.wait(), STOP_S)
                except TimeoutError:
                    await _kill(child)
        await asyncio.gather(*self._watchers)


async def _kill(child: asyncio.subprocess.Process) -> None:
    """It and what it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    await child.wait()
