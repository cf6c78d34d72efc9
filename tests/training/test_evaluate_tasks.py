"""MTEB tasks: the library itself over data that is here, and clear words where it or the hub is not."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from models.errors import ConfigError
from models.text import Cleaning
from training.evaluate import tasks
from training.evaluate.config import ROLASER_TASKS


@pytest.fixture(scope="module", autouse=True)
def library():
    """Here and not above: mteb's 1,500 modules would be imported by every process that collects tests."""
    pytest.importorskip("mteb", reason="the extra [mteb] is not installed")
    pytest.importorskip("datasets")


class Letters:
    """Letter counts as vectors."""

    version, dim, cleaning = "letters", 26, Cleaning()

    def encode(self, texts):
        counts = np.array([[1e-6 + t.lower().count(chr(97 + i)) for i in range(26)] for t in texts], np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


FIRST = ["the water rose", "send food and tents", "the roof fell", "we are safe here"]
SECOND = ["the waters rose", "send tents and food", "a dog sleeps", "prices went up"]


def with_data(name: str, **columns):
    """A task of the library with rows of ours in the place of those on the hub."""
    import datasets

    task = tasks.find_tasks([name])[0]
    task.dataset = datasets.DatasetDict({"test": datasets.Dataset.from_dict(columns)})
    task.data_loaded = True
    return task


def test_a_relatedness_task_gives_spearman_of_the_encoders_cosines():
    gold = [4.0, 5.0, 1.0, 0.5]
    found = tasks.run_tasks(Letters(), [with_data("STSBenchmark", sentence1=FIRST, sentence2=SECOND, score=gold)])
    cosines = (Letters().encode(FIRST) * Letters().encode(SECOND)).sum(1)
    ranks = [np.argsort(np.argsort(values)) for values in (cosines, gold)]
    expected = 1 - 6 * ((ranks[0] - ranks[1]) ** 2).sum() / (4 * (16 - 1))  # Spearman without ties
    assert found == {
        "STSBenchmark": {"score": pytest.approx(100 * expected), "metric": "cosine_spearman", "split": "test"}
    }


def test_a_task_of_pairs_gives_average_precision_by_cosine():
    # By cosine the pairs rank 1, 0, 2 or 3 …: the positives are the first and the third in rank.
    cosines = (Letters().encode(FIRST) * Letters().encode(SECOND)).sum(1)
    order = np.argsort(-cosines)
    labels = np.zeros(4, int)
    labels[order[[0, 2]]] = 1
    task = with_data("TwitterSemEval2015", sentence1=[FIRST], sentence2=[SECOND], labels=[labels.tolist()])
    found = tasks.run_tasks(Letters(), [task])["TwitterSemEval2015"]
    assert found["metric"] == "cosine_ap" and found["score"] == pytest.approx(100 * (1 / 1 + 2 / 3) / 2)


def test_the_four_tasks_of_the_paper_exist_with_its_measures():
    assert [t.metadata.main_score for t in tasks.find_tasks(ROLASER_TASKS)] == [
        "accuracy",
        "max_ap",
        "max_ap",
        "cosine_spearman",
    ]


def test_an_unknown_task_is_named():
    with pytest.raises(ConfigError, match="tasks=NoSuchTask"):
        tasks.find_tasks(["NoSuchTask"])


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mteb", None)  # an import of it fails
    with pytest.raises(tasks.TaskError, match=r"pip install '\.\[mteb\]'"):
        tasks.find_tasks(["STS12"])


def test_without_the_hub_the_task_and_the_way_out_are_named(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    with pytest.raises(tasks.TaskError, match="cannot fetch the data of STSBenchmark: .*HF_ENDPOINT"):
        tasks.run_tasks(Letters(), tasks.find_tasks(["STSBenchmark"]))
