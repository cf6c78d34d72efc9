"""The loop that torch jobs share: schedule, validation, best weights, early stopping, resuming after a kill.

A run that is killed and started again with the same knobs and data gives the weights of an unbroken one: every step
draws from its own seed, so nothing random has to be saved. Checkpoints are safetensors, never pickle.

A machine that is lent for minutes needs no kill: with `minutes` a run ends by itself when they are over (TimeIsUp), its
checkpoint written, and the same command goes on. How long a slice is does not make it another run.
"""

from __future__ import annotations

import math
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec
import torch
from msgspec import Struct
from rich.progress import Progress
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from models.errors import ConfigError

__all__ = [
    "BEST",
    "CHECKPOINT",
    "Pace",
    "TimeIsUp",
    "Trace",
    "autocast",
    "device",
    "fast_dtype",
    "fit",
    "load_weights",
    "minutes_left",
]

CHECKPOINT = "checkpoint.safetensors"
BEST = "best.safetensors"


class Pace(Struct, frozen=True):
    """How a run proceeds; steps are optimizer steps."""

    steps: int
    lr: float  # AdamW's peak; rises over `warmup` steps, then falls linearly to 0
    warmup: int
    seed: int
    checkpoint_every: int
    validate_every: int = 0  # 0 = only before the first and after the last step
    patience: int = 0  # validations without improvement before the run stops early; 0 = never
    threshold: float = 0.0  # what counts as improvement
    clip: float = 0.0  # largest gradient norm; 0 = no limit
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)  # AdamW's memory of gradients and of their squares
    eps: float = 1e-8  # AdamW's, beside the root of the squares
    fused: bool = False  # AdamW in one pass over each tensor: worth it for one large table
    falls_from_start: bool = False  # the rate falls from step 0, under the warm-up; else from the warm-up's end
    minutes: float = 0.0  # of wall time, after which the loop writes its checkpoint and ends; 0 = no limit


class Trace(Struct, omit_defaults=True):  # JSON has no infinity: a run without validation must not write its best
    """What a run went through. Validation values: lower is better."""

    step: int = 0
    best: float = math.inf
    best_step: int = 0
    stale: int = 0  # validations since the best
    stopped: bool = False  # early
    history: list[tuple[int, float]] = []

    def figures(self) -> dict[str, object]:
        """What a result tells of how the run went. Raises IndexError without validation."""
        before = self.history[0][1]
        return {
            "loss_before": before,
            "loss_best": self.best,
            "best_step": self.best_step,
            "history": self.history,
        }


class TimeIsUp(SystemExit):
    """The minutes of a run are over before its steps; its checkpoint is written, and the same command goes on.

    No error. Where nobody catches it the process ends with status 75, which sysexits.h calls "try again": a script must
    not go on to what needs the finished weights, and none of a job's own last lines may run.
    """

    def __init__(self, told: str) -> None:
        super().__init__(75)
        self.told = told

    def __str__(self) -> str:
        return self.told


def minutes_left(minutes: float, began: float) -> float:
    """What a job's preparation has left its loop of so many minutes. began: of time.monotonic().

    Never so little that a start would take no step; 0 stays no limit.
    """
    return minutes and max(minutes - (time.monotonic() - began) / 60, 1e-9)


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def fast_dtype() -> torch.dtype:
    """What matrices multiply fastest in here: bf16 where the processor has it, else float32, which then is 3 times as
    fast.
    """
    if torch.cuda.is_available():
        return torch.bfloat16
    found = torch.cpu.get_capabilities()
    return torch.bfloat16 if found.get("amx_bf16") or found.get("avx512_bf16") else torch.float32


def autocast(where: torch.device) -> torch.autocast:
    """bf16 on a GPU, float32 elsewhere."""
    return torch.autocast(where.type, torch.bfloat16, enabled=where.type == "cuda")


def fit(
    module: torch.nn.Module,
    losses: Callable[[int], Iterable[torch.Tensor]],
    pace: Pace,
    folder: Path,
    key: str,
    validate: Callable[[], float] | None = None,
    after_step: Callable[[int], None] | None = None,
    title: str = "training",
    rates: Mapping[str, float] = MappingProxyType({}),
    clock: Callable[[], float] = time.monotonic,
) -> Trace:
    """Train `module` in place; it ends with the last weights, to be read with (no dropout), as a run that was done
    before does; `folder/best.safetensors` holds the best ones.

    losses(step) yields the parts of the step's loss (micro-batches), each backpropagated as it comes.
    rates: what the rate is multiplied by for the parameters whose names begin so (a new head learns faster).
    key: what makes this run this run (run_key). Raises ConfigError if the folder holds a run of another key, TimeIsUp
    after `pace.minutes` by the clock (seconds), but not before one more step is done.
    """
    until = clock() + 60 * pace.minutes if pace.minutes else math.inf
    folder.mkdir(parents=True, exist_ok=True)
    where = next(module.parameters()).device
    trained = [p for p in module.parameters() if p.requires_grad]
    groups: dict[float, list[torch.nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            factor = next((rates[start] for start in rates if name.startswith(start)), 1.0)
            groups.setdefault(factor, []).append(parameter)
    optimizer = torch.optim.AdamW(
        [{"params": parameters, "factor": factor} for factor, parameters in groups.items()],
        lr=pace.lr,
        weight_decay=pace.weight_decay,
        betas=pace.betas,
        eps=pace.eps,
        fused=pace.fused,
    )
    trace = resume(folder / CHECKPOINT, key, module, optimizer)

    def check() -> None:
        if validate is None:
            return
        module.eval()
        with torch.no_grad():
            value = validate()
        trace.history.append((trace.step, value))
        if value < trace.best - pace.threshold:
            trace.best, trace.best_step, trace.stale = value, trace.step, 0
            save_weights(folder / BEST, module)
        else:
            trace.stale += 1
            trace.stopped = bool(pace.patience) and trace.stale >= pace.patience

    if trace.step == 0 and not trace.history:
        check()
    over = False
    with Progress() as progress:
        bar = progress.add_task(title, total=pace.steps, completed=trace.step)
        while trace.step < pace.steps and not trace.stopped and not over:
            torch.manual_seed(pace.seed * 1_000_003 + trace.step)  # dropout of a resumed run is that of an unbroken one
            for group in optimizer.param_groups:
                group["lr"] = group["factor"] * pace.lr * learning_rate(trace.step, pace)
            module.train()
            total = 0.0
            for loss in losses(trace.step):
                loss.backward()
                total += loss.item()
            if not math.isfinite(total):
                raise FloatingPointError(f"the loss is {total} at step {trace.step}: lower lr={pace.lr}")
            if pace.clip:
                torch.nn.utils.clip_grad_norm_(trained, pace.clip)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            trace.step += 1
            progress.update(bar, completed=trace.step, description=f"{title}, loss {total:.4f}")
            if after_step:
                after_step(trace.step)
            last = trace.step == pace.steps
            if last or (pace.validate_every and trace.step % pace.validate_every == 0):
                check()
            done = last or trace.stopped
            over = not done and clock() >= until
            if done or over or trace.step % pace.checkpoint_every == 0:
                save_checkpoint(folder / CHECKPOINT, key, trace, module, None if done else optimizer, _job(losses))
    if over:
        raise _time_is_up(title, trace.step, pace.steps, folder / CHECKPOINT, _job(losses))
    if where.type == "cuda":
        torch.cuda.synchronize()
    module.eval()
    return trace


def _job(losses: Callable) -> str:
    """The module that was started as a job, or else the one these losses are of."""
    started = getattr(getattr(sys.modules["__main__"], "__spec__", None), "name", "")
    return started.removesuffix(".__main__") if started.startswith("training.") else losses.__module__


def _time_is_up(title: str, step: int, steps: int, path: Path, job: str) -> TimeIsUp:
    """Says how far the run is and how it goes on."""
    command = shlex.join(["python", "-m", job, *sys.argv[1:]])
    told = TimeIsUp(
        f"{title}: the time is up at step {step:,} of {steps:,} ({step / steps:.0%}), all of it in {path}; "
        f"the same command goes on from there: {command}"
    )
    print(told, flush=True)
    return told


def learning_rate(step: int, pace: Pace) -> float:
    """Share of the peak at a step: up over the warm-up, then down to 0 at the end."""
    if pace.falls_from_start:
        return min((step + 1) / max(1, pace.warmup), 1 - step / pace.steps)
    if step < pace.warmup:
        return (step + 1) / pace.warmup
    return max(0.0, (pace.steps - step) / max(1, pace.steps - pace.warmup))


def tensors_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Every parameter and buffer once, tied ones under their first name."""
    return {
        name: tensor.detach().contiguous() for name, tensor in (*module.named_parameters(), *module.named_buffers())
    }


def save_weights(path: Path, module: torch.nn.Module) -> None:
    _save(path, tensors_of(module), {})


def load_weights(path: Path, module: torch.nn.Module) -> None:
    """Put weights that `save_weights` wrote into a module of the same make."""
    _copy(load_file(path), module)


def save_checkpoint(
    path: Path, key: str, trace: Trace, module: torch.nn.Module, optimizer: torch.optim.Optimizer | None, job: str
) -> None:
    """Weights, the optimizer's state and the trace in one file; a reader finds the old one or the new one.

    optimizer: None of a run that is done, whose file then is a third as large. job: the module it is a run of, for who
    asks the weights what they learnt from.
    """
    tensors = {f"module.{name}": tensor for name, tensor in tensors_of(module).items()}
    for number, (_, state) in enumerate(_states(optimizer) if optimizer else []):
        tensors |= {f"optimizer.{number}.{name}": value for name, value in state.items()}
    _save(path, tensors, {"key": key, "trace": msgspec.json.encode(trace).decode(), "job": job})


def resume(path: Path, key: str, module: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Trace:
    """Load the checkpoint of this very run, if there is one. Raises ConfigError if it is of another, or damaged."""
    if not path.exists():
        return Trace()
    try:
        with safe_open(path, "pt") as file:
            metadata = {"key": "", "trace": ""} | (file.metadata() or {})
            check_key(path, metadata["key"], key)
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except SafetensorError as error:
        raise ConfigError(
            f"{path} is cut or damaged ({error}): put a whole copy in its place, or remove it to begin anew"
        ) from None
    _copy({name[7:]: t for name, t in tensors.items() if name.startswith("module.")}, module)
    for number, (parameter, _) in enumerate(_states(optimizer)):
        prefix = f"optimizer.{number}."
        optimizer.state[parameter] = {
            name[len(prefix) :]: t if name.endswith(".step") else t.to(parameter.device)
            for name, t in tensors.items()
            if name.startswith(prefix)
        }
    return msgspec.json.decode(metadata["trace"], type=Trace, strict=False)


def _states(optimizer: torch.optim.Optimizer) -> list[tuple[torch.nn.Parameter, dict]]:
    return [(p, optimizer.state.get(p, {})) for group in optimizer.param_groups for p in group["params"]]


def _copy(tensors: dict[str, torch.Tensor], module: torch.nn.Module) -> None:
    mine = tensors_of(module)
    if differing := sorted(mine.keys() ^ tensors.keys()):
        raise ValueError(f"weights of another model: {len(differing)} tensors differ by name, first {differing[0]}")
    with torch.no_grad():
        for name, tensor in tensors.items():
            mine[name].copy_(tensor)


def _save(path: Path, tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> None:
    """Raises ConfigError where it cannot be written; what was there before stays."""
    temporary = path.with_suffix(".tmp")
    try:
        save_file(tensors, temporary, metadata=metadata or None)
    except SafetensorError as error:
        temporary.unlink(missing_ok=True)  # half of it would fill a full disk
        raise ConfigError(f"{path} cannot be written ({error}): make room, and the same command goes on") from None
    temporary.replace(path)


def check_key(path: Path, found: str, key: str) -> None:
    """Raises ConfigError if the keys differ: going on would put another run's weights in the place of hours of work.

    The knob `minutes` may differ: it says when a run pauses, not what it becomes.
    """
    if _but_for_minutes(found) != _but_for_minutes(key):
        raise ConfigError(
            f"{path.parent} holds another run (other knobs, data or base): choose out=FOLDER, or remove it"
        )


def _but_for_minutes(key: str) -> str:
    """A key of run_key, which is JSON with its knobs in order, without that knob."""
    return re.sub(r', "minutes": [^,}]+', "", key)
