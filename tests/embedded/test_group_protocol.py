"""The group protocol, request by request: the same answers from both brokers."""

import asyncio
import contextlib

import pytest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest

from tests.embedded.wire import RawMember, Wire

UNKNOWN_TOPIC, ILLEGAL_GENERATION, INCONSISTENT, UNKNOWN_MEMBER, REBALANCING = 3, 22, 23, 25, 27
MEMBER_ID_REQUIRED = 79


@pytest.fixture
async def member(broker, name):
    """member(…) → one more RawMember of the same group, on a connection of its own."""
    async with contextlib.AsyncExitStack() as stack:

        async def make(group: str = name, **options) -> RawMember:
            wire = await stack.enter_async_context(Wire(broker))
            await wire.find_coordinator(group)
            return RawMember(wire, group, **options)

        yield make


async def commit(
    member: RawMember, topic: str, offset: int, member_id: str | None = None, generation: int | None = None
) -> int:
    t = OffsetCommitRequest.OffsetCommitRequestTopic
    sent = t(name=topic, partitions=[t.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)])
    request = OffsetCommitRequest(
        group_id=member.group,
        member_id=member.id if member_id is None else member_id,
        topics=[sent],
        generation_id_or_member_epoch=member.generation if generation is None else generation,
    )
    return (await member.wire.ask(request, 8)).topics[0].partitions[0].error_code


async def committed(member: RawMember, topic: str) -> int:
    t = OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])
    answer = await member.wire.ask(OffsetFetchRequest(group_id=member.group, topics=[t]), 7)
    return answer.topics[0].partitions[0].committed_offset


async def pair(member) -> tuple[RawMember, RawMember]:
    """Two members in one stable generation; the first leads."""
    one, two = await member(), await member()
    await one.enter()
    await one.sync({one.id: b"all"})
    entering = asyncio.create_task(two.enter())
    await one.told_to_join_again()
    await one.join()
    await entering
    await asyncio.gather(one.sync({one.id: b"1st", two.id: b"2nd"}), two.sync())
    return one, two


async def test_a_newcomer_is_given_an_id_first_and_then_leads_the_empty_group(member):
    one = await member()
    first = await one.join()
    assert first.error_code == MEMBER_ID_REQUIRED
    assert first.member_id
    second = await one.join()
    assert second.error_code == 0
    assert second.leader == second.member_id == first.member_id
    assert [(m.member_id, bytes(m.metadata)) for m in second.members] == [(one.id, b"topics")]
    assert second.protocol_name == "range"
    assert await one.state() == "CompletingRebalance"
    assert await one.sync({one.id: b"mine"}) == (0, b"mine")
    assert await one.state() == "Stable"
    assert await one.heartbeat() == 0


async def test_an_id_nobody_gave_out_is_refused(member):
    one = await member()
    one.id = "somebody"
    assert (await one.join()).error_code == UNKNOWN_MEMBER


async def test_a_second_member_makes_the_first_join_again_and_both_get_what_the_leader_planned(member):
    one, two = await member(), await member()
    await one.enter()
    await one.sync({one.id: b"all"})
    before = one.generation
    entering = asyncio.create_task(two.enter())
    await one.told_to_join_again()
    assert await one.state() == "PreparingRebalance"
    again = await one.join()
    entered = await entering
    assert again.generation_id == entered.generation_id == before + 1
    assert again.leader == entered.leader == one.id
    assert {m.member_id for m in again.members} == {one.id, two.id}
    assert not entered.members  # only the leader plans
    waiting = asyncio.create_task(two.sync())
    assert await one.sync({one.id: b"1st", two.id: b"2nd"}) == (0, b"1st")
    assert await waiting == (0, b"2nd")


async def test_a_member_that_leaves_makes_the_other_join_again(member):
    one, two = await pair(member)
    assert await two.leave() == 0
    assert await one.heartbeat() == REBALANCING
    alone = await one.join()
    assert [m.member_id for m in alone.members] == [one.id]
    assert await two.heartbeat() == UNKNOWN_MEMBER
    assert await two.leave() == UNKNOWN_MEMBER


async def test_when_the_last_member_leaves_the_group_is_empty_and_starts_over(member):
    one = await member()
    await one.enter()
    await one.sync({one.id: b"all"})
    assert await one.leave() == 0
    assert await one.state() == "Empty"
    one.id = ""
    assert (await one.enter()).leader == one.id


async def test_a_silent_member_is_dropped_after_its_session_and_the_other_takes_over(member):
    one, two = await member(session_ms=10_000), await member(session_ms=800)
    await one.enter()
    await one.sync({one.id: b"all"})
    entering = asyncio.create_task(two.enter())
    await one.told_to_join_again()
    await asyncio.gather(one.join(), entering)
    await asyncio.gather(one.sync({one.id: b"1st", two.id: b"2nd"}), two.sync())
    silent_since = asyncio.get_running_loop().time()
    await one.told_to_join_again()  # the first keeps its session, the second says nothing
    assert 0.6 < asyncio.get_running_loop().time() - silent_since < 4
    assert [m.member_id for m in (await one.join()).members] == [one.id]
    assert await two.heartbeat() == UNKNOWN_MEMBER


async def test_a_leader_that_dies_before_it_plans_is_replaced(member):
    one, two = await member(session_ms=800), await member(session_ms=10_000)
    await one.enter()
    await one.sync({one.id: b"all"})
    entering = asyncio.create_task(two.enter())
    await one.told_to_join_again()
    await asyncio.gather(one.join(), entering)
    assert await two.sync() == (REBALANCING, b"")  # waits for the leader's plan, which never comes
    alone = await two.join()
    assert alone.leader == two.id
    assert await two.sync({two.id: b"all"}) == (0, b"all")


async def test_a_follower_that_joins_again_unchanged_disturbs_nobody(member):
    one, two = await pair(member)
    again = await two.join()
    assert (again.error_code, again.generation_id, again.leader) == (0, one.generation, one.id)
    assert await one.heartbeat() == 0
    assert await two.sync() == (0, b"2nd")


async def test_a_follower_with_new_topics_starts_a_rebalance(member):
    one, two = await pair(member)
    joining = asyncio.create_task(two.join({"range": b"other topics"}))
    await one.told_to_join_again()
    told = await one.join()
    await joining
    assert {bytes(m.metadata) for m in told.members} == {b"topics", b"other topics"}


async def test_members_must_have_a_protocol_in_common(member):
    one, two = await member(), await member()
    await one.enter(protocols={"range": b"", "sticky": b""})
    assert (await two.enter(protocols={"roundrobin": b""})).error_code == INCONSISTENT


async def test_the_protocol_is_one_that_every_member_knows(member):
    one, two = await member(), await member()
    await one.enter(protocols={"range": b"r", "sticky": b"s"})
    await one.sync({one.id: b"all"})
    entering = asyncio.create_task(two.enter(protocols={"sticky": b"s2"}))
    await one.told_to_join_again()
    told = await one.join(protocols={"range": b"r", "sticky": b"s"})
    await entering
    assert told.protocol_name == "sticky"
    assert {bytes(m.metadata) for m in told.members} == {b"s", b"s2"}


async def test_offsets_are_committed_only_by_members_of_this_generation(member, topic):
    one = await member()
    await one.enter()
    await one.sync({one.id: b"all"})
    assert await commit(one, topic, 7) == 0
    assert await commit(one, topic, 8, generation=one.generation + 1) == ILLEGAL_GENERATION
    assert await commit(one, topic, 8, member_id="nobody") == UNKNOWN_MEMBER
    assert await commit(one, topic, 8, member_id="", generation=-1) == UNKNOWN_MEMBER
    assert await one.heartbeat(generation=one.generation + 1) == ILLEGAL_GENERATION
    assert await committed(one, topic) == 7


async def test_anyone_may_commit_for_a_group_without_members(member, topic):
    one = await member()
    assert await commit(one, topic, 5, member_id="", generation=-1) == 0
    assert await committed(one, topic) == 5
    assert await commit(one, topic, 6, member_id="nobody", generation=3) == UNKNOWN_MEMBER
    assert await committed(one, topic) == 5


async def test_offsets_of_topics_that_do_not_exist_are_refused(member, name):
    one = await member()
    assert await commit(one, f"{name}-absent", 5, member_id="", generation=-1) == UNKNOWN_TOPIC
    assert await committed(one, f"{name}-absent") == -1


async def test_a_commit_during_the_rebalance_still_counts_and_between_join_and_sync_does_not(member, topic):
    one, two = await member(), await member()
    await one.enter()
    await one.sync({one.id: b"all"})
    entering = asyncio.create_task(two.enter())
    await one.told_to_join_again()
    assert await commit(one, topic, 9) == 0
    await one.join()
    await entering
    assert await commit(one, topic, 10) == REBALANCING
    assert await committed(one, topic) == 9
