"""The thresholds clusters need under one encoder, stored beside it as clusters.json.

Cosines of another encoder lie elsewhere: what joins two posts about one happening under one, joins the whole stream
under the next. So the thresholds are part of a version and change with it; what the settings name holds against them.
Put there by `python -m training.evaluate_clusters … keep=true`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Set
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from models.clusters.config import ClusterConfig
from models.errors import BundleError, ConfigError

__all__ = ["TunedClusters", "read_tuned_clusters"]


class TunedClusters(Struct, frozen=True, forbid_unknown_fields=True):
    """What was measured for one encoder version, at one share of words."""

    encoder_version: str
    t_attach: float
    t_merge: float
    lexical: float  # ClusterConfig.lexical both were measured with: at another share they say nothing
    measured_on: str = ""  # the stream, and what was reached there
    beside_version: str = ""  # of which static encoder; "" where none is
    beside: Annotated[float, Meta(ge=0.0)] = 0.0  # weight of the static encoder's vector beside this one's; 0 = none

    def fit(self, config: ClusterConfig, given: Set[str] = frozenset()) -> ClusterConfig:
        """The config with these thresholds, but for the fields somebody gave by hand: those stay.

        At another share of words than they were measured with, the config stays as it is.
        """
        if config.lexical != self.lexical:
            return config
        return dataclasses.replace(
            config,
            t_attach=config.t_attach if "t_attach" in given else self.t_attach,
            t_merge=config.t_merge if "t_merge" in given else self.t_merge,
        )


def read_tuned_clusters(path: Path, encoder_version: str) -> TunedClusters:
    """Those stored beside a bundle. Raises BundleError if they are not there, damaged, or another encoder's."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=TunedClusters)
        found.fit(ClusterConfig(lexical=found.lexical))  # checks the values
    except OSError as error:
        raise BundleError(f"{path} is not there: {error.strerror}") from None
    except (msgspec.MsgspecError, ConfigError) as error:
        raise BundleError(f"{path}: {error}") from error
    if found.encoder_version != encoder_version:
        raise BundleError(
            f"{path} was made for {found.encoder_version}, the encoder is {encoder_version}: measure anew"
        )
    return found
