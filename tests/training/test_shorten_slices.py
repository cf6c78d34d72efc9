"""Shortening and adapting by slices, as on a machine that is lent for ten minutes: both jobs whole, on a tiny model."""

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from safetensors.torch import load_file

from tests.models.tiny_transformer import save_tiny
from training import adapt, shorten
from training.class_material import Taught
from training.loop import CHECKPOINT, TimeIsUp

ROOT = Path(__file__).parents[2]
A_STEP = 1e-6  # minutes: over when the first step is done
JOBS = {
    "shorten": (shorten, shorten.Config(keep=(0, 2), frozen=1, epochs=3, batch=32, written=60, data=False)),
    "adapt": (adapt, adapt.Config(frozen=2, epochs=1, batch=16, sentences=8, others=4, written=240, data=False)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("whole"), "bert", normalize=True)


def knobs(config, model, out, **more):
    return msgspec.structs.replace(config, model=str(model), out=str(out), **more)


def thinned(material):
    """A fifth of what is learnt from: the query packs alone have 2,800 sentences."""

    def some(config):
        taught, names, standing = material(config)
        return Taught(taught.texts[::5], taught.labels[::5], taught.weights[::5]), names, standing[::5]

    return some


@pytest.mark.parametrize("name", JOBS)
def test_a_job_that_stops_at_its_time_limit_goes_on_to_the_model_of_an_unbroken_one(
    name, folder, tmp_path, one_thread, capsys, monkeypatch
):
    monkeypatch.setattr(adapt, "_material", thinned(adapt._material))
    job, config = JOBS[name]
    whole = job.main(knobs(config, folder, tmp_path / "whole"))
    sliced = knobs(config, folder, tmp_path / "sliced", minutes=A_STEP)
    with pytest.raises(TimeIsUp):
        job.main(sliced)
    assert not (tmp_path / "sliced" / "model").exists()  # nothing that might be taken for the finished one
    assert "the time is up at step 1 of " in capsys.readouterr().out
    done = job.main(knobs(config, folder, tmp_path / "sliced"))
    one, other = (load_file(path / "model.safetensors") for path in (whole, done))
    assert one.keys() == other.keys() and all((one[tensor] == other[tensor]).all() for tensor in one)


def test_of_a_run_that_was_learnt_elsewhere_its_one_file_is_enough_to_write_the_model_here(
    folder, tmp_path, one_thread, monkeypatch
):
    """As the docstring says: the same command, where the same model lies at the same place."""
    config = knobs(JOBS["shorten"][1], "lent/model", "lent/short")
    for place in ("there", "here"):
        shutil.copytree(folder, tmp_path / place / "lent" / "model")
    monkeypatch.chdir(tmp_path / "there")
    there = shorten.main(config).absolute()
    back = tmp_path / "here" / "lent" / "short" / "run"
    back.mkdir(parents=True)
    shutil.copy(there.parent / "run" / CHECKPOINT, back)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(shorten.Tower, "vectors", lambda self, texts: pytest.fail("it learns"))
    here = shorten.main(config).absolute()
    assert here != there and (here / "model.safetensors").read_bytes() == (there / "model.safetensors").read_bytes()


def test_what_is_carried_of_the_checkout_leaves_room_for_a_piece_of_the_model():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no checkout")
    shipped = ("models/data/encoder/", "models/data/flood/")
    left = [ROOT / name for name in listed.stdout.split("\0") if name and not name.startswith(shipped)]
    size = sum(path.stat().st_size for path in left if path.exists())
    assert all(place.rstrip("/") in shorten.__doc__ for place in shipped)
    assert 10e6 < size <= 64 * 2**20 - 30 * 2**20 - 4e6  # `split -b 30M`, and the wheels
