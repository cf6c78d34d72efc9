"""The loop every torch job runs in: resumed runs, best weights, early stopping, the schedule."""

from __future__ import annotations

import json

import msgspec
import pytest
import torch
from safetensors import SafetensorError

from models.errors import ConfigError
from training import classify, loop, semrel
from training.bundled_posts import bundled_posts
from training.files import DataError, read_table, read_texts
from training.loop import BEST, CHECKPOINT, Pace, fit, learning_rate, load_weights, tensors_of
from training.run_key import run_key


class Line(torch.nn.Module):
    """y = w x + b with dropout, so that a run that forgot its seed would differ; `tied` is w under a second name."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.line = torch.nn.Linear(3, 1)
        self.tied = self.line.weight
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.line(torch.nn.functional.dropout(x, 0.3, self.training))


def losses_of(model: Line):
    def losses(step: int):
        generator = torch.Generator().manual_seed(step)
        x = torch.randn(16, 3, generator=generator)
        for part in x.chunk(2):  # two micro-batches a step
            yield (model(part) - part.sum(1, keepdim=True)).square().mean() / 2
        model.seen += 1

    return losses


def distance(model: Line) -> float:
    return float((model.line.weight - 1).abs().sum())


PACE = Pace(steps=40, lr=0.05, warmup=5, seed=3, checkpoint_every=7, validate_every=5)


@pytest.mark.parametrize("killed_at", [1, 7, 8, 20, 39])
def test_a_run_killed_at_any_step_and_started_again_ends_as_the_unbroken_one(tmp_path, killed_at):
    whole, broken = Line(), Line()
    trace = fit(whole, losses_of(whole), PACE, tmp_path / "a", "k", lambda: distance(whole))

    def killed(step: int) -> None:
        if step == killed_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(broken, losses_of(broken), PACE, tmp_path / "b", "k", lambda: distance(broken), killed)
    again = Line()
    resumed = fit(again, losses_of(again), PACE, tmp_path / "b", "k", lambda: distance(again))
    assert resumed == trace
    for name, tensor in tensors_of(whole).items():
        assert torch.equal(tensor, tensors_of(again)[name]), name
    load_weights(tmp_path / "a" / BEST, whole)
    load_weights(tmp_path / "b" / BEST, again)
    assert torch.equal(whole.line.weight, again.line.weight)


def test_a_checkpoint_that_is_cut_is_an_error_that_names_it_and_it_stays_as_it_was(tmp_path):
    model = Line()
    fit(model, losses_of(model), PACE, tmp_path, "k")
    path = tmp_path / CHECKPOINT
    for cut in (path.read_bytes()[:-1], path.read_bytes()[:20], b""):
        path.write_bytes(cut)
        with pytest.raises(ConfigError, match=r"checkpoint\.safetensors is cut or damaged \(.+\): .* or remove it"):
            fit(Line(), losses_of(model), PACE, tmp_path, "k")
        assert path.read_bytes() == cut


def test_weights_that_cannot_be_written_are_an_error_that_names_the_file(tmp_path):
    gone = tmp_path / "gone" / BEST
    with pytest.raises(ConfigError, match=r"gone/best\.safetensors cannot be written \(.+\): make room"):
        loop.save_weights(gone, Line())


def test_weights_that_were_written_half_leave_nothing_but_those_of_before(tmp_path, monkeypatch):
    loop.save_weights(tmp_path / BEST, Line())
    before = (tmp_path / BEST).read_bytes()

    def full(tensors, path, metadata):
        path.write_bytes(b"half")
        raise SafetensorError("No space left on device (os error 28)")

    monkeypatch.setattr(loop, "save_file", full)
    with pytest.raises(ConfigError, match="No space left"):
        loop.save_weights(tmp_path / BEST, Line())
    assert [path.name for path in tmp_path.iterdir()] == [BEST] and (tmp_path / BEST).read_bytes() == before


def test_a_finished_run_is_not_run_again_and_another_run_does_not_take_its_place(tmp_path):
    model = Line()
    fit(model, losses_of(model), PACE, tmp_path, "k", lambda: distance(model))
    again = Line()
    fit(again, lambda step: pytest.fail("ran again"), PACE, tmp_path, "k", lambda: distance(again))
    assert torch.equal(again.line.weight, model.line.weight)
    best = (tmp_path / BEST).read_bytes()
    with pytest.raises(ConfigError, match="holds another run .*: choose out=FOLDER"):
        fit(Line(), losses_of(again), PACE, tmp_path, "another key", lambda: 0.0)
    assert (tmp_path / BEST).read_bytes() == best


def test_a_base_trained_again_at_the_same_place_makes_another_run(tmp_path):
    config = msgspec.defstruct("Config", [("base", str, str(tmp_path)), ("out", str, "")])()
    (tmp_path / "weights").write_bytes(b"old")
    before = run_key(config, "d")
    assert run_key(config, "d") == before
    (tmp_path / "weights").write_bytes(b"new")
    assert run_key(config, "d") != before


def test_the_best_weights_are_those_of_the_lowest_validation_even_the_first(tmp_path):
    model = Line()
    begin = model.line.weight.detach().clone()
    values = iter([0.1, 0.5, 0.3, 0.4, 0.6, 0.6, 0.6, 0.6, 0.6])
    trace = fit(model, losses_of(model), PACE, tmp_path, "k", lambda: next(values))
    assert (trace.best, trace.best_step, len(trace.history)) == (0.1, 0, 9)
    load_weights(tmp_path / BEST, model)
    assert torch.equal(model.line.weight, begin)


def test_a_run_stops_early_after_patience_validations_without_improvement(tmp_path):
    model = Line()
    pace = Pace(steps=40, lr=0.05, warmup=0, seed=3, checkpoint_every=7, validate_every=5, patience=2, threshold=0.01)
    values = iter([1.0, 0.5, 0.495, 0.499])
    trace = fit(model, losses_of(model), pace, tmp_path, "k", lambda: next(values))
    assert trace.stopped and trace.step == 15 and trace.best == 0.5
    again = Line()
    assert fit(again, lambda step: pytest.fail("went on"), pace, tmp_path, "k", lambda: 0.0).stopped


def test_the_rate_rises_over_the_warm_up_and_falls_to_nothing():
    pace = Pace(steps=10, lr=1, warmup=4, seed=0, checkpoint_every=1)
    assert [learning_rate(s, pace) for s in range(10)] == pytest.approx(
        [0.25, 0.5, 0.75, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]
    )
    low = Pace(steps=10, lr=1, warmup=4, seed=0, checkpoint_every=1, falls_from_start=True)
    assert [learning_rate(s, low) for s in range(10)] == pytest.approx(
        [0.25, 0.5, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    )


def test_adam_remembers_and_softens_as_the_pace_says(tmp_path):
    """Two steps with gradients 1 and 3, by hand: Kingma and Ba 2015, algorithm 1."""
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    pace = Pace(
        steps=2, lr=0.1, warmup=2, seed=0, checkpoint_every=9, weight_decay=0.0, betas=(0.8, 0.6), eps=0.5
    )  # rates .05, then .1
    fit(model, lambda step: [(1.0, 3.0)[step] * model.weight.sum()], pace, tmp_path, "k")
    first = -0.05 * 1 / (1 + 0.5)
    mean = (0.8 * 0.2 * 1 + 0.2 * 3) / (1 - 0.8**2)
    square = (0.6 * 0.4 * 1 + 0.4 * 9) / (1 - 0.6**2)
    assert model.weight.item() == pytest.approx(first - 0.1 * mean / (square**0.5 + 0.5), rel=1e-5)


def test_a_loss_that_is_no_number_stops_the_run(tmp_path):
    model = Line()
    with pytest.raises(FloatingPointError, match="nan at step 0: lower lr=0.05"):
        fit(model, lambda step: [model(torch.full((1, 3), torch.nan)).sum()], PACE, tmp_path, "k")


def test_checkpoints_are_safetensors_and_hold_tied_weights_once(tmp_path):
    model = Line()

    def killed(step: int) -> None:
        if step == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(model, losses_of(model), PACE, tmp_path, "k", after_step=killed)
    with loop.safe_open(tmp_path / CHECKPOINT, "pt") as file:
        names = set(file.keys())
    assert {"module.line.bias", "module.seen", "optimizer.0.exp_avg"} <= names
    assert len(names & {"module.line.weight", "module.tied"}) == 1
    with pytest.raises(ValueError, match="another model"):
        loop._copy({"x": torch.zeros(1)}, model)


def test_the_key_holds_every_knob_but_the_place_of_the_output():
    assert run_key(PACE, "d") == run_key(PACE, "d") != run_key(PACE, "e")
    from training.mlm import Config

    assert run_key(Config(out="a"), "d") == run_key(Config(out="b"), "d") != run_key(Config(lr=1), "d")
    assert run_key(semrel.Config(result="a.json"), "d") == run_key(semrel.Config(), "d")


def test_the_key_holds_what_lies_in_the_encoder_that_a_word_names():
    keys = {base: run_key(classify.Config(base=base), "d") for base in ("flood", "reader", "bundled")}
    told = {base: json.loads(key)[2]["base"] for base, key in keys.items()}
    assert told["bundled"] == told["reader"] != told["flood"]


def test_tables_name_the_line_and_the_column_that_is_missing(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "water", "label": ["a", "b"], "split": "train"}\n\n{"text": ""}\n')
    with pytest.raises(DataError, match=r"x.jsonl, line 3: no text, label; it has text"):
        read_table(path, ("text", "label"))
    path.write_text('{"text": "water", "label": ["a", "b"]}\n')
    assert read_table(path, ("text", "label"), ("split",)) == [{"text": "water", "label": "a"}]
    path.write_text("{")
    with pytest.raises(DataError, match="line 1"):
        read_table(path, ("text",))
    (tmp_path / "x.tsv").write_text("a\tb\n1\t2\n3\n")
    with pytest.raises(DataError, match="line 3: 1 columns, the header has 2"):
        read_table(tmp_path / "x.tsv", ("a",))
    with pytest.raises(DataError, match="neither .tsv nor .jsonl"):
        read_table(tmp_path / "x.parquet", ("a",))
    with pytest.raises(DataError, match="missing data file"):
        read_texts(tmp_path / "none.txt")
    (tmp_path / "x.txt.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="damaged data file"):
        read_texts(tmp_path / "x.txt.gz")


def test_there_are_always_some_posts():
    posts = bundled_posts()
    assert len({p.lang for p in posts}) >= 20 and len({p.query for p in posts}) >= 20
    assert all(p.text.strip() for p in posts)
