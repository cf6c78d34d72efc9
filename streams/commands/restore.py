"""`crisis restore`: a live view that Redis lost, from what Kafka holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

import click
import msgspec
from aiokafka.errors import KafkaError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from models.errors import ServiceError
from models.records import Alert, ClusterEvent
from streams.broker.states import Record, State, newest_states
from streams.broker.topics import require_topics
from streams.commands.files import note
from streams.config import Settings
from streams.view.connect import connect, reaching_redis
from streams.view.live import LiveView
from streams.view.restoring import Restoring
from streams.worker.keeping import keep_alerts
from streams.worker.outbox import Outbox
from streams.worker.sending import Sender

__all__ = ["Restored", "restore", "restore_view"]

T = TypeVar("T")

_alert = msgspec.json.Decoder(Alert).decode
_cluster = msgspec.json.Decoder(ClusterEvent).decode


class Restored(msgspec.Struct):
    """How many alerts and clusters were read and put. What is not put the view had, as new or newer, or has expired."""

    alerts: int = 0
    alerts_put: int = 0
    withdrawn: int = 0  # their posts were deleted since Redis lost them
    clusters: int = 0
    clusters_put: int = 0
    left_out: int = 0  # clusters that nobody goes on with
    unread: int = 0  # records of either that are none; the log names each

    def __str__(self) -> str:
        told = f"{self.alerts:,} alerts read, {self.alerts_put:,} put"
        if self.withdrawn:
            told += f", {self.withdrawn:,} withdrawn: their posts were deleted since"
        told += f"; {self.clusters:,} clusters read, {self.clusters_put:,} put"
        if self.left_out:
            told += f", {self.left_out:,} left out: no worker goes on with them"
        if self.unread:
            told += f"; {self.unread:,} unreadable"
        return told


async def restore_view(settings: Settings, bar: Progress) -> Restored:
    """Put the newest state of each alert and cluster into the view. To be repeated, and killed, without harm.

    Raises ServiceError without broker, topics or Redis.
    """
    done = Restored()
    with reaching_redis(settings.redis):
        async with connect(settings.redis) as redis:
            view = LiveView(redis, settings)
            restoring = await Restoring.into(view, settings)
            await asyncio.to_thread(require_topics, settings, "alerts", "clusters")
            async for alerts in _states(settings, bar, done, "alerts", _alert, lambda alert, record: alert.revision):
                put, withdrawn = await restoring.alerts([(state.value, state.at) for state in alerts])
                ids = {alert.alert_id for alert in withdrawn}
                late = [s.value for s in alerts if not s.last and s.value.alert_id not in ids]
                if withdrawn or late:
                    await _send(settings, view, withdrawn + late)
                done.alerts += len(alerts)
                done.alerts_put += len(put)
                done.withdrawn += len(withdrawn)
            # One worker writes them at a time: what stands last is the newest, whatever its version.
            async for clusters in _states(
                settings, bar, done, "clusters", _cluster, lambda event, record: record.offset
            ):
                told, left_out = await restoring.clusters([(state.value, state.at) for state in clusters])
                done.clusters += len(clusters)
                done.clusters_put += len(told)
                done.left_out += left_out
    return done


async def _states(
    settings: Settings,
    bar: Progress,
    done: Restored,
    topic: str,
    decode: Callable[[bytes], T],
    rank: Callable[[T, Record], int],
) -> AsyncIterator[Sequence[State[T]]]:
    task, unread = bar.add_task(topic, total=0), done.unread
    for part in newest_states(settings, topic, decode, rank):
        bar.update(task, completed=part.done, total=part.total)
        done.unread = unread + part.unread
        if part.states:
            yield part.states
        await asyncio.sleep(0)  # for Ctrl-C


async def _send(settings: Settings, view: LiveView, alerts: list[Alert]) -> None:
    """So that they stand last on the topic: sent before they are kept and after, as workers do."""
    sender = Sender(settings)
    outbox = Outbox(sender, settings)
    try:
        await sender.start()
        await outbox.send_alerts(alerts)
        await outbox.delivered()
        await keep_alerts(outbox, view, alerts, lambda alert: True)
    except KafkaError as error:
        raise ServiceError(f"{settings.topics.name('alerts')} cannot be written to: {error}") from error
    finally:
        await sender.stop()


@click.command()
@click.pass_obj
def restore(settings: Settings) -> None:
    """Put the alerts and clusters that Kafka holds back into Redis: after it was emptied, or came back older.

    Workers and dashboard may run meanwhile, and should: what they have put is newer and stays. Withdrawn alerts stay
    withdrawn; what was deleted since Redis lost it is withdrawn now. Repeat it at any time. Counters, latencies and
    "repeated n times" begin anew.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=note) as bar:
        done = asyncio.run(restore_view(settings, bar))
    click.echo(str(done))
