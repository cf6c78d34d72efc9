"""What a client says again and again is told once in a while, with how often it was said."""

import logging

from streams.worker.quiet import Repeats, quieten


def told(name: str, wording: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, __file__, 1, wording, args, None)


def test_a_wording_is_told_once_in_ten_seconds_and_then_with_how_many_were_left_out():
    now = [0.0]
    repeats = Repeats(clock=lambda: now[0])
    first = told("aiokafka", "Unable connect to node with id %s: %s", 1, "refused")
    assert repeats.filter(first) and first.getMessage() == "Unable connect to node with id 1: refused"
    for now[0] in (0.1, 5.0, 9.9):
        assert not repeats.filter(told("aiokafka", "Unable connect to node with id %s: %s", 2, "reset"))
    now[0] = 10.0
    again = told("aiokafka", "Unable connect to node with id %s: %s", 1, "refused")
    assert repeats.filter(again)
    assert again.getMessage() == "Unable connect to node with id 1: refused [3 more of these since]"
    now[0] = 20.0
    alone = told("aiokafka", "Unable connect to node with id %s: %s", 1, "refused")
    assert repeats.filter(alone) and "more of these" not in alone.getMessage()


def test_other_wordings_levels_and_loggers_are_told():
    repeats = Repeats(clock=lambda: 0.0)
    assert repeats.filter(told("aiokafka", "a %s", 1)) and repeats.filter(told("aiokafka", "b %s", 1))
    assert repeats.filter(told("aiokafka.conn", "a %s", 1))
    warning = told("aiokafka", "a %s", 1)
    warning.levelno = logging.WARNING
    assert repeats.filter(warning)


def test_loggers_below_a_package_are_quiet_and_those_beside_it_are_not(caplog):
    below, beside = logging.getLogger("chatty.part"), logging.getLogger("chattyless")
    quieten("chatty")
    quieten("chatty")
    for logger in (below, below, beside, beside):
        logger.error("no broker at %s", "x")
    assert [r.name for r in caplog.records] == ["chatty.part", "chattyless", "chattyless"]
