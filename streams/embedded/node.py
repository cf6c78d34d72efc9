"""What the broker holds, and how it answers every request: cluster and topics, records, consumer groups.

A request is answered by the method of its name, with a dict in the protocol's own field names (an unknown name is an
error, a missing one gets the protocol's default) or with Kafka's error.
"""

import asyncio
import contextlib
import itertools
import re
import uuid
from collections.abc import Callable

from kafka import errors

from streams.embedded.groups import Group, Member
from streams.embedded.log import Partition, read_config
from streams.embedded.wire import SERVED, attempt

__all__ = ["HOST", "Node"]

CLUSTER, NODE = "embedded-not-for-production", 1
HOST = "127.0.0.1"  # never another: there is no access control
LATEST, EARLIEST = -1, -2
TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")


class Node:
    """Topics and groups. `auto_create`: topics are made (one partition) when a client asks for them."""

    def __init__(self, port: int, retention_bytes: int = 0, auto_create: bool = False) -> None:
        self.port, self.retention_bytes, self.auto_create = port, retention_bytes, auto_create
        self.topics: dict[str, list[Partition]] = {}
        self.groups: dict[str, Group] = {}
        self.producer_ids = itertools.count(1000)

    def create_topic(self, name: str, partitions: int = 1, config: dict[str, str] | None = None) -> None:
        """Raises InvalidTopicError, TopicAlreadyExistsError, InvalidPartitionsError or InvalidConfigurationError."""
        if not TOPIC_NAME.fullmatch(name):
            raise errors.InvalidTopicError(f"{name!r} is no topic name")
        if name in self.topics:
            raise errors.TopicAlreadyExistsError(f"{name} exists")
        if partitions < 1:
            raise errors.InvalidPartitionsError(f"{name} with {partitions} partitions")
        known = read_config(config or {})
        self.topics[name] = [Partition(known, self.retention_bytes) for _ in range(partitions)]

    def delete_topic(self, name: str) -> None:
        """With its records and the offsets committed for it. Raises UnknownTopicOrPartitionError."""
        if self.topics.pop(name, None) is None:
            raise errors.UnknownTopicOrPartitionError(f"no topic {name!r}")
        for group in self.groups.values():
            group.offsets = {at: kept for at, kept in group.offsets.items() if at[0] != name}

    def topic(self, name: str) -> list[Partition]:
        """Raises UnknownTopicOrPartitionError."""
        if name not in self.topics:
            raise errors.UnknownTopicOrPartitionError(f"no topic {name!r}")
        return self.topics[name]

    def partition(self, topic: str, index: int) -> Partition:
        """Raises UnknownTopicOrPartitionError."""
        if index not in range(len(self.topic(topic))):
            raise errors.UnknownTopicOrPartitionError(f"{topic} has no partition {index}")
        return self.topics[topic][index]

    def each_partition(self, request, function: Callable[[str, object], dict | None]) -> dict:
        """The answer of the many requests that name partitions by topic: `function(topic, partition)` for each."""

        def one(topic: str, p) -> dict:
            return {"partition_index": p.partition_index, **attempt(function, topic, p)}

        topics = request.topics
        return {"topics": [{"name": t.name, "partitions": [one(t.name, p) for p in t.partitions]} for t in topics]}

    def group(self, name: str, create: bool = False) -> Group:
        """Raises UnknownMemberIdError: who asks for a group that is not there is not in it."""
        if name not in self.groups and not create:
            raise errors.UnknownMemberIdError(name)
        return self.groups.setdefault(name, Group(name))

    def api_versions(self, request) -> dict:
        return {
            "api_keys": [
                {"api_key": key, "min_version": versions[0], "max_version": versions[-1]}
                for key, (_, versions) in sorted(SERVED.items())
            ]
        }

    def metadata(self, request) -> dict:
        here = {"leader_id": NODE, "leader_epoch": 0, "replica_nodes": [NODE], "isr_nodes": [NODE]}

        def describe(name: str) -> dict:
            if name not in self.topics and request.allow_auto_topic_creation and self.auto_create:
                self.create_topic(name)
            return {"partitions": [{"partition_index": i, **here} for i in range(len(self.topic(name)))]}

        names = list(self.topics) if request.topics is None else [t.name for t in request.topics]
        node = {"node_id": NODE, "host": HOST, "port": self.port}
        return {
            "brokers": [node],
            "cluster_id": CLUSTER,
            "controller_id": NODE,
            "topics": [{"name": name, **attempt(describe, name)} for name in names],
        }

    def create_topics(self, request) -> dict:
        def create(asked) -> None:
            partitions = 1 if asked.num_partitions == -1 else asked.num_partitions
            self.create_topic(asked.name, partitions, {c.name: c.value for c in asked.configs})

        return {"topics": [{"name": asked.name, **attempt(create, asked)} for asked in request.topics]}

    def delete_topics(self, request) -> dict:
        return {"responses": [{"name": name, **attempt(self.delete_topic, name)} for name in request.topic_names]}

    def init_producer_id(self, request) -> dict:
        if request.transactional_id is not None:
            raise errors.InvalidRequestError("transactions are not supported by the embedded broker")
        return {"producer_id": next(self.producer_ids)}

    def produce(self, request) -> dict | None:
        def append(topic: str, sent) -> dict:
            return {"base_offset": self.partition(topic, sent.index).append(bytes(sent.records or b""))}

        def one(topic: str, sent) -> dict:
            return {"index": sent.index, "base_offset": -1, **attempt(append, topic, sent)}

        topics = request.topic_data
        done = [{"name": t.name, "partition_responses": [one(t.name, p) for p in t.partition_data]} for t in topics]
        return {"responses": done} if request.acks else None

    async def fetch(self, request) -> dict:
        """Answer when there is something to tell or `max_wait_ms` is over; an appended record lets it look again."""
        topics, enough = self._read(request, woken := asyncio.Event())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(request.max_wait_ms / 1000):
                while not enough:
                    await woken.wait()
                    woken.clear()
                    topics, enough = self._read(request, woken)
        return {"responses": topics}

    def _read(self, request, woken: asyncio.Event) -> tuple[list[dict], bool]:
        """What there is of each partition, and whether that is worth an answer: bytes enough, or an error."""
        size_bytes = 0

        def read(topic: str, p) -> dict:
            nonlocal size_bytes
            partition = self.partition(topic, p.partition)
            room = min(p.partition_max_bytes, request.max_bytes - size_bytes)
            records = partition.read(p.fetch_offset, room, first=size_bytes == 0)
            size_bytes += len(records)
            partition.waiting.add(woken)
            ends = dict.fromkeys(("high_watermark", "last_stable_offset"), partition.end)
            return {"log_start_offset": partition.start, "records": records, **ends}

        def one(topic: str, p) -> dict:
            return {"partition_index": p.partition, "high_watermark": -1, "records": b"", **attempt(read, topic, p)}

        topics = [{"topic": t.topic, "partitions": [one(t.topic, p) for p in t.partitions]} for t in request.topics]
        failed = any(p["error_code"] for t in topics for p in t["partitions"])
        return topics, failed or size_bytes >= max(1, request.min_bytes)

    def list_offsets(self, request) -> dict:
        def look_up(topic: str, asked) -> dict:
            partition, at = self.partition(topic, asked.partition_index), asked.timestamp
            if at in (LATEST, EARLIEST):
                return {"offset": partition.end if at == LATEST else partition.start, "leader_epoch": 0}
            found = next((r for r in partition.records() if r.timestamp >= at), None)
            return {"offset": found.offset, "timestamp": found.timestamp, "leader_epoch": 0} if found else {}

        return self.each_partition(request, look_up)

    def find_coordinator(self, request) -> dict:
        return {"node_id": NODE, "host": HOST, "port": self.port}

    async def join_group(self, request) -> dict:
        group = self.group(request.group_id, create=True)
        if not request.member_id:
            group.welcomed.add(member_id := f"member-{uuid.uuid4()}")
            return {"error_code": errors.MemberIdRequiredError.errno, "member_id": member_id}
        session_s, rebalance_s = request.session_timeout_ms / 1000, request.rebalance_timeout_ms / 1000
        protocols = {p.name: bytes(p.metadata) for p in request.protocols}
        new = Member(request.member_id, request.header.client_id or "", session_s, rebalance_s, protocols)
        await group.join(new, request.protocol_type)
        told = group.members.values() if group.leader == new.id else ()  # only the leader plans
        return {
            "generation_id": group.generation,
            "protocol_type": group.protocol_type,
            "leader": group.leader,
            "protocol_name": group.protocol,
            "member_id": new.id,
            "members": [{"member_id": m.id, "metadata": m.protocols[group.protocol]} for m in told],
        }

    async def sync_group(self, request) -> dict:
        group, plan = self.group(request.group_id), {a.member_id: bytes(a.assignment) for a in request.assignments}
        assignment = await group.sync(request.member_id, request.generation_id, plan)
        return {"protocol_type": group.protocol_type, "protocol_name": group.protocol, "assignment": assignment}

    def heartbeat(self, request) -> dict:
        group = self.group(request.group_id)
        group.check(request.member_id, request.generation_id)
        if group.state == "PreparingRebalance":
            raise errors.RebalanceInProgressError()
        return {}

    def leave_group(self, request) -> dict:
        group = self.group(request.group_id)
        group.drop(group.check(request.member_id))
        return {}

    def offset_commit(self, request) -> dict:
        group = self.group(request.group_id, create=True)

        def commit(topic: str, p) -> None:
            group.may_commit(request.member_id, request.generation_id_or_member_epoch)
            self.partition(topic, p.partition_index)  # raises if there is none
            group.offsets[topic, p.partition_index] = p.committed_offset, p.committed_metadata or ""

        return self.each_partition(request, commit)

    def offset_fetch(self, request) -> dict:
        offsets = self.groups[request.group_id].offsets if request.group_id in self.groups else {}
        every = [(topic, [index]) for topic, index in offsets]
        wanted = every if request.topics is None else [(t.name, t.partition_indexes) for t in request.topics]

        def committed(topic: str, index: int) -> dict:
            offset, note = offsets.get((topic, index), (-1, ""))
            return {"partition_index": index, "committed_offset": offset, "metadata": note}

        return {"topics": [{"name": t, "partitions": [committed(t, i) for i in parts]} for t, parts in wanted]}

    def list_groups(self, request) -> dict:
        return {"groups": [{"group_id": g.id, "protocol_type": g.protocol_type} for g in self.groups.values()]}

    def describe_groups(self, request) -> dict:
        def describe(name: str) -> dict:
            group = self.groups.get(name) or Group(name, state="Dead")
            members = [
                {
                    "member_id": m.id,
                    "client_id": m.client_id,
                    "member_assignment": m.assignment,
                    "member_metadata": m.protocols.get(group.protocol, b""),
                }
                for m in group.members.values()
            ]
            return {
                "group_id": name,
                "group_state": group.state,
                "protocol_type": group.protocol_type,
                "protocol_data": group.protocol,
                "members": members,
            }

        return {"groups": [describe(name) for name in request.groups]}
