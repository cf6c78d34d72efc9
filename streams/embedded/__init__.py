"""A Kafka-protocol broker in memory and a Redis child process, for a laptop and quick tests. NOT FOR PRODUCTION."""

from streams.embedded.broker import EmbeddedBroker, Fault

__all__ = ["EmbeddedBroker", "Fault"]
