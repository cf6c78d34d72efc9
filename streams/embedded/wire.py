"""The Kafka protocol: which requests are served, in which versions, and their bytes, by kafka-python's classes."""

import inspect
import re
import struct
from collections.abc import Callable

from kafka.errors import BrokerResponseError
from kafka.protocol import admin, consumer, metadata, producer
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.data_container import DataContainer

__all__ = ["BadRequest", "HEADER", "SERVED", "VERSIONS", "attempt", "read", "respond", "write"]

HEADER = struct.Struct(">hhi")  # api key, api version, correlation id
MESSAGES = {**vars(admin), **vars(consumer), **vars(metadata), **vars(producer)}
# First and last version: where our clients and Apache Kafka 4 meet (a test compares), and without two ways to answer.
VERSIONS = {
    "ApiVersions": (0, 4), "Metadata": (4, 9), "CreateTopics": (2, 6), "DeleteTopics": (1, 5),
    "InitProducerId": (0, 4), "Produce": (3, 9), "Fetch": (4, 11), "ListOffsets": (1, 6), "FindCoordinator": (0, 3),
    "JoinGroup": (5, 7), "SyncGroup": (0, 5), "Heartbeat": (0, 4), "LeaveGroup": (0, 2), "OffsetCommit": (2, 8),
    "OffsetFetch": (1, 7), "ListGroups": (0, 3), "DescribeGroups": (0, 5),
}  # fmt: skip
SERVED = {MESSAGES[f"{name}Request"].API_KEY: (name, range(a, b + 1)) for name, (a, b) in VERSIONS.items()}


class BadRequest(Exception):
    """A client sent what cannot be answered; its connection is closed, as Apache Kafka does."""


def attempt(function: Callable[..., dict | None], *args: object) -> dict:
    """What the function returns, with the code of the Kafka error it raises, or 0."""
    try:
        return {"error_code": 0, **(function(*args) or {})}
    except BrokerResponseError as error:
        return {"error_code": error.errno}


def read(data: bytes) -> tuple[str, ApiMessage]:
    """The request and its name. Raises BadRequest for what is not served and for bytes that are not a request."""
    key, version, _ = HEADER.unpack_from(data)
    name, versions = SERVED.get(key, (str(key), ()))
    if version not in versions:
        raise BadRequest(f"request {name} v{version} is not served by the embedded broker")
    try:
        return name, MESSAGES[f"{name}Request"].decode(data, version=version, header=True)
    except Exception as error:  # whatever the decoder trips over, the frame is to blame
        raise BadRequest(f"{name} v{version} cannot be read: {error!r}") from error


async def respond(node: object, name: str, request: ApiMessage, error: int = 0) -> ApiMessage | None:
    """The node's answer, with this error everywhere if there is one; None where the client wants no answer."""
    try:
        body = getattr(node, re.sub(r"\B([A-Z])", r"_\1", name).lower())(request)
        body = await body if inspect.isawaitable(body) else body
    except BrokerResponseError as raised:
        body = {"error_code": raised.errno}
    return None if body is None else _fill(MESSAGES[f"{name}Response"], body, error)


def _fill(message: type[DataContainer], body: dict, error: int) -> DataContainer:
    for name, value in body.items():
        field = message.fields[name]
        if field.is_struct_array() and value:
            body[name] = [_fill(field.data_class, one, error) for one in value]
    if error and "error_code" in message.fields:
        body["error_code"] = error
    return message(**body)


def write(request: ApiMessage, response: ApiMessage) -> bytes:
    """The bytes that go back, with their length in front."""
    response.API_VERSION = request.version  # before the header: kafka-python would set it there too
    response.with_header(correlation_id=request.header.correlation_id)
    return response.encode(header=True, framed=True)
