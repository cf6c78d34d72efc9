"""The protocol without a client library: what is sent is what is written here, and every answer is seen."""

from __future__ import annotations

import asyncio
from types import TracebackType

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

from streams.embedded.wire import MESSAGES


class Wire:
    """One connection; requests are answered in order."""

    def __init__(self, bootstrap: str) -> None:
        self.host, port = bootstrap.split(":")
        self.port, self.asked = int(port), 0

    async def __aenter__(self) -> Wire:
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        return self

    async def __aexit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.writer.close()
        await self.writer.wait_closed()

    async def ask(self, request: ApiMessage, version: int) -> ApiMessage:
        """Send a request and wait for its answer."""
        self.asked += 1
        request.API_VERSION = version
        request.with_header(correlation_id=self.asked, client_id="wire")
        self.writer.write(request.encode(header=True, framed=True))
        size_bytes = int.from_bytes(await self.reader.readexactly(4), "big")
        answer = await self.reader.readexactly(size_bytes)
        response = MESSAGES[request.name.replace("Request", "Response")]
        return response.decode(answer, version=version, header=True)

    async def find_coordinator(self, group: str) -> None:
        """As every client does first; Apache Kafka makes its offsets topic only then, and takes a moment to load it."""
        while (await self.ask(FindCoordinatorRequest(key=group), 3)).error_code:
            await asyncio.sleep(0.05)
        while (await self.ask(DescribeGroupsRequest(groups=[group]), 5)).groups[0].error_code:
            await asyncio.sleep(0.05)

    async def produce(self, topic: str, batch: bytes) -> tuple[int, int]:
        """(error code, base offset) of partition 0."""
        data = ProduceRequest.TopicProduceData
        sent = data(name=topic, partition_data=[data.PartitionProduceData(index=0, records=batch)])
        request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=5000, topic_data=[sent])
        done = (await self.ask(request, 9)).responses[0].partition_responses[0]
        return done.error_code, done.base_offset


def record_batch(
    values: list[bytes],
    producer: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    key: bytes | None = b"k",
    timestamp_ms: int = 1_700_000_000_000,
    codec: int = 0,
) -> bytes:
    made = DefaultRecordBatchBuilder(2, codec, False, producer, epoch, sequence, 1 << 30)
    for at, value in enumerate(values):
        made.append(at, timestamp_ms + at, key, value, [])
    return bytes(made.build())


class RawMember:
    """A member of a consumer group that does only what it is told."""

    def __init__(self, wire: Wire, group: str, session_ms: int = 30_000) -> None:
        self.wire, self.group, self.session_ms = wire, group, session_ms
        self.id, self.generation = "", -1

    async def join(self, protocols: dict[str, bytes] | None = None) -> JoinGroupResponse:
        """JoinGroup, once: an error code is an answer too."""
        one = JoinGroupRequest.JoinGroupRequestProtocol
        answer = await self.wire.ask(
            JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=self.session_ms,
                rebalance_timeout_ms=10_000,
                member_id=self.id,
                protocol_type="consumer",
                protocols=[one(name=n, metadata=m) for n, m in (protocols or {"range": b"topics"}).items()],
            ),
            6,
        )
        self.id, self.generation = answer.member_id or self.id, answer.generation_id
        return answer

    async def enter(self, **options: object) -> JoinGroupResponse:
        """JoinGroup as a client does: again with the id that the first answer gave."""
        answer = await self.join(**options)
        return await self.join(**options) if answer.error_code == 79 else answer

    async def sync(self, plan: dict[str, bytes] | None = None) -> tuple[int, bytes]:
        """(error code, assignment)."""
        one = SyncGroupRequest.SyncGroupRequestAssignment
        answer = await self.wire.ask(
            SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.id,
                assignments=[one(member_id=m, assignment=a) for m, a in (plan or {}).items()],
            ),
            4,
        )
        return answer.error_code, bytes(answer.assignment)

    async def heartbeat(self, generation: int | None = None) -> int:
        """The error code."""
        at = self.generation if generation is None else generation
        request = HeartbeatRequest(group_id=self.group, generation_id=at, member_id=self.id)
        return (await self.wire.ask(request, 3)).error_code

    async def told_to_join_again(self) -> None:
        """Return when a heartbeat says that a rebalance is under way."""
        while (code := await self.heartbeat()) == 0:
            await asyncio.sleep(0.02)
        assert code == 27, f"heartbeat: error {code}"

    async def leave(self) -> int:
        """The error code."""
        return (await self.wire.ask(LeaveGroupRequest(group_id=self.group, member_id=self.id), 2)).error_code

    async def state(self) -> str:
        answer = await self.wire.ask(DescribeGroupsRequest(groups=[self.group]), 5)
        return answer.groups[0].group_state
