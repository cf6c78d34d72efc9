"""Every error this project raises on purpose.

    CrisisError
    ├── ConfigError            a setting is missing, unknown or out of range
    ├── Rejected               one incoming record is refused; carries the reason that goes to posts.rejected
    ├── QueryError             a query pack or a live query change is not valid
    ├── LabelError             a label that nothing can be learnt from
    ├── EncoderError           an encoder cannot be loaded or used
    │   ├── BundleError        a bundle is tampered with, truncated or of an unknown format
    │   └── VersionMismatch    vectors of two encoder versions, or of two dimensions, were about to meet
    ├── Unreadable             what was saved is damaged, or parts of two states
    ├── SampleTooSmall         not enough rows to fit or calibrate what was asked for
    └── ServiceError           Kafka, Redis or a source cannot be reached, or answered nonsense

World errors (a bad record, an unreachable broker) are these; anything else that escapes is a bug.
"""

__all__ = [
    "BundleError",
    "ConfigError",
    "CrisisError",
    "EncoderError",
    "LabelError",
    "QueryError",
    "Rejected",
    "SampleTooSmall",
    "ServiceError",
    "Unreadable",
    "VersionMismatch",
]


class CrisisError(Exception):
    """Base of all errors raised on purpose; its message says what, where and how to fix it."""


class ConfigError(CrisisError):
    """A setting is missing, unknown or out of range."""


class Rejected(CrisisError):
    """One incoming record is refused. `reason` is a short closed word (a metric label), `detail` is for people."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class QueryError(CrisisError):
    """A query pack or a live query change is not valid."""


class Unreadable(CrisisError):
    """What was saved cannot be read back: damaged, or parts of two states."""


class LabelError(CrisisError):
    """A label that nothing can be learnt from."""


class EncoderError(CrisisError):
    """An encoder cannot be loaded or used."""


class BundleError(EncoderError):
    """An encoder bundle is tampered with, truncated or of an unknown format."""


class VersionMismatch(EncoderError):
    """Vectors of two encoder versions, or of two dimensions, were about to be compared."""


class SampleTooSmall(CrisisError):
    """Not enough rows to fit or calibrate what was asked for."""


class ServiceError(CrisisError):
    """Kafka, Redis or a source cannot be reached, or answered something unusable."""
