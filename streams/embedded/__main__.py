"""`python -m streams.embedded --port 9092`: the embedded broker as a process of its own, until Ctrl-C or SIGTERM."""

import argparse
import asyncio
import signal

from streams.embedded.broker import EmbeddedBroker


async def run(port: int) -> None:
    stopped = asyncio.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, stopped.set)
    async with EmbeddedBroker(port) as broker:
        print(f"embedded broker (in memory, NOT FOR PRODUCTION) on {broker.bootstrap}", flush=True)
        await stopped.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m streams.embedded", description=__doc__)
    parser.add_argument("--port", type=int, default=9092, help="on 127.0.0.1; 0 = any free one (default %(default)s)")
    asyncio.run(run(parser.parse_args().port))
