"""A Faust application with default settings: counts words through a table and passes every word on in capitals.

Run as `python tests/embedded/faust_app.py PREFIX BROKER DATADIR worker --without-web`.
"""

import sys

import faust

prefix, broker, data = (sys.argv.pop(1) for _ in range(3))
app = faust.App(f"{prefix}app", broker=f"kafka://{broker}", datadir=data, topic_partitions=2)
words = app.topic(f"{prefix}words", value_type=bytes, value_serializer="raw")
loud = app.topic(f"{prefix}loud", value_type=bytes, value_serializer="raw")
counts = app.Table(f"{prefix}counts", default=int)


@app.agent(words)
async def shout(stream: faust.Stream) -> None:
    async for word in stream:
        counts[word.decode()] += 1
        await loud.send(key=word, value=word.upper() + b" %d" % counts[word.decode()])


if __name__ == "__main__":
    app.main()
