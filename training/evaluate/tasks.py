"""Tasks of the Massive Text Embedding Benchmark, by the mteb library (extra [mteb]), where a hub can be reached.

    python -m training.evaluate ENCODER rolaser                       # the four of table 8 of Nishimwe et al. 2024
    python -m training.evaluate ENCODER laptop tasks=STS12,STS16

Source: Muennighoff et al. 2023, https://aclanthology.org/2023.eacl-main.148.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.progress import track

from models.encoders.protocol import Encoder
from models.errors import ConfigError, CrisisError

__all__ = ["find_tasks", "run_tasks"]


class TaskError(CrisisError):
    """A task could not be run; the message has the reason and the way out."""


def find_tasks(names: Sequence[str]) -> list:
    """mteb's tasks of these names, English where a task has several languages. Raises ConfigError, TaskError."""
    try:
        import mteb
    except ImportError as error:
        raise TaskError(f"tasks={','.join(names)} need the mteb library: pip install '.[mteb]' ({error})") from error
    try:
        return [mteb.get_task(name, languages=["eng"]) for name in names]
    except KeyError as error:
        raise ConfigError(f"tasks={','.join(names)}: {error.args[0]}") from None


def run_tasks(encoder: Encoder, tasks: Sequence) -> dict[str, dict]:
    """By task: its score in percent, which measure that is, and the split.

    The measure is mteb's main one; of pair classification the average precision by cosine, as the paper prints, where
    mteb takes the best over several similarities. Raises TaskError if the data of one cannot be had.
    """
    import mteb

    found = {}
    for task in track(tasks, description="tasks"):
        _fetch(task)
        metric = "cosine_ap" if task.metadata.type == "PairClassification" else task.metadata.main_score
        with warnings.catch_warnings():
            # The paper's STSBenchmark has a second version by now; its figures compare with the first.
            warnings.filterwarnings("ignore", message="The task .* is superseded")
            result = mteb.evaluate(_wrapped(encoder), task, cache=None, show_progress_bar=False)
        for split, scores in result.task_results[0].scores.items():
            found[task.metadata.name] = {
                "score": 100 * float(np.mean([subset[metric] for subset in scores])),
                "metric": metric,
                "split": split,
            }
    return found


def _fetch(task: Any) -> None:
    from datasets.exceptions import DatasetsError
    from httpx import HTTPError

    try:
        task.load_data()
    # RuntimeError: what huggingface_hub 1.16 ends in when a name cannot be resolved (it goes on with a closed client).
    except (OSError, RuntimeError, HTTPError, DatasetsError) as error:
        raise TaskError(
            f"cannot fetch the data of {task.metadata.name}: {str(error).splitlines()[0]}; tasks come from a "
            "hub: run this"
            " where it can be reached (HF_ENDPOINT names a mirror), or leave `tasks` out"
        ) from error


def _wrapped(encoder: Encoder):
    """The encoder as mteb wants it: vectors of batches of texts, no prompts; its cosine is the similarity."""
    from mteb.models import ModelMeta
    from mteb.models.abs_encoder import AbsEncoder

    class Wrapped(AbsEncoder):
        mteb_model_meta = ModelMeta.create_empty(
            {"name": f"crisis-streams/{encoder.version}", "revision": encoder.version}
        )

        def encode(self, inputs, **_: Any) -> np.ndarray:
            return encoder.encode([text for batch in inputs for text in batch["text"]])

    return Wrapped()
