"""The broker's TLS and SASL settings as Faust wants them."""

from __future__ import annotations

import faust

from streams.broker.connect import ssl_context
from streams.config.secrets import secret
from streams.config.sections import Broker

__all__ = ["faust_credentials"]


def faust_credentials(broker: Broker) -> faust.SSLCredentials | faust.SASLCredentials | None:
    """What Faust connects with: as `client_options`, in its own types."""
    context = ssl_context(broker)
    if broker.security.startswith("SASL"):
        return faust.SASLCredentials(
            username=broker.username,
            password=secret(broker.password_file),
            ssl_context=context,
            mechanism=broker.sasl_mechanism,
        )
    return faust.SSLCredentials(context=context) if context else None
