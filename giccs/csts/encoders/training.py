"""Training with one seed on transformers' Trainer: epochs, and checkpoints for resuming.

Checkpoints contain the weights as safetensors. The state of optimizer, schedule and random number generators
is in torch's own format, which transformers reads with ``weights_only``, so that no code in it is executed.
Its ``training_args.bin`` is a pickle that nothing reads, and is removed.
"""

from __future__ import annotations

import json
import logging
import math
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Subset
from transformers import (
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
    set_seed,
)

from bws.base.problems import InputError, Problem
from giccs.csts.data import Instance
from giccs.csts.encoders.base import Tokens, base_folder, freeze, load_encoder, load_tokens
from giccs.csts.encoders.inputs import Batches, Units, in_order, model_inputs, units
from giccs.csts.encoders.losses import objective
from giccs.csts.encoders.scorer import Scorer
from giccs.csts.encoders.settings import Machine, Settings, is_first, processes
from giccs.csts.encoders.splits import Splits, sample_rows
from giccs.measures.metrics import correlations
from giccs.progress import Progress, silent

STATE = "trainer_state.json"
"""The file that transformers writes last into a checkpoint."""
NEEDED = ("model.safetensors", "optimizer.pt", "scheduler.pt")

log = logging.getLogger(__name__)

UNDEFINED = -2.0
"""Replacement for undefined correlations in the selection of the best epoch: below every other value."""
CHOSEN_BY = "chosen_by"
EVALUATION_ROWS = 64


def last_whole(folder: Path) -> Path | None:
    """Return the latest complete checkpoint, or None."""
    complete = [path for path in folder.glob("checkpoint-*") if _is_whole(path)]
    return max(complete, key=_step, default=None)


def discard_broken(folder: Path) -> None:
    """Remove incomplete checkpoints of an interrupted training."""
    for path in folder.glob("checkpoint-*"):
        if not _is_whole(path):
            shutil.rmtree(path)


def _is_whole(path: Path) -> bool:
    try:
        state = json.loads((path / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return state.get("global_step") == _step(path) and all(
        (path / name).is_file() for name in NEEDED
    )


def _step(path: Path) -> int:
    number = path.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


@dataclass(frozen=True)
class Fitted:
    """A trained model and its predictions."""

    predictions: Mapping[str, NDArray[np.float64]]
    """Split of `Splits.predicted` -> (N,) scores of its rows."""
    epochs: tuple[Mapping[str, float], ...]
    """Metrics of each epoch on validation: ``epoch, loss, spearman, pearson``."""
    best_epoch: int
    """The first epoch with the highest Spearman correlation on validation."""
    selected_epoch: int
    """The epoch of `scorer`: the last one, or the best."""
    scorer: Scorer
    tokens: Tokens
    rows: Mapping[str, int]
    """Numbers of training rows: ``trained``, of these ``in_pairs`` for a quadruplet loss, and
    ``left_out``."""
    truncated: int
    """Number of truncated texts in all splits."""
    seconds: float


def fit(
    settings: Settings, splits: Splits, folder: Path, machine: Machine, progress: Progress = silent
) -> Fitted:
    """Train with the single seed of `settings` in `folder`, resuming from the last complete checkpoint.

    The model of the last epoch is kept, or that of the best one (`Settings.select`). Raises InputError if
    there are no training rows, if the encoder is unavailable or has too few layers to freeze, or if the
    device does not support the precision.
    """
    start = time.perf_counter()
    _check_precision(settings, machine)
    (seed,) = settings.seeds
    base = base_folder(settings.model, settings.revision)
    tokens = load_tokens(settings.model, base, settings.max_length)
    set_seed(seed)  # Layers added here start with random weights.
    scorer = Scorer(load_encoder(settings.model, base), settings)
    _freeze(scorer, settings)
    training_rows = sample_rows(splits.train, settings.train_rows, seed)
    together = units(training_rows, settings.objective)
    if not together:
        message = (
            "no sentence pair has two rows with different labels, which quad requires; use mse"
        )
        raise InputError(Problem(splits.name, None, message))
    training = Units(together, tokens, settings)
    scored = {
        split: Units([(row,) for row in splits.rows(split)], tokens, settings)
        for split in splits.predicted
    }
    arguments = _arguments(settings, len(training), folder, machine)
    order = {split: rows.by_length() for split, rows in scored.items()}
    sorted_rows = {split: Subset(rows, order[split]) for split, rows in scored.items()}
    trainer = _trainer(settings, scorer, arguments, training, sorted_rows["validation"], tokens)
    trainer.add_callback(_Watch(progress, settings.described()))
    trainer.train(resume_from_checkpoint=_go_on_from(folder))
    history = trainer.state.log_history
    best_epoch = _best_epoch(history)
    return Fitted(
        predictions={
            split: in_order(trainer.predict(rows).predictions, order[split])
            for split, rows in sorted_rows.items()
        },
        epochs=_epochs(history),
        best_epoch=best_epoch,
        selected_epoch=best_epoch if settings.select == "best" else settings.epochs,
        scorer=scorer,
        tokens=tokens,
        rows=_training_counts(training_rows, together),
        truncated=sum(encoded_units.truncated for encoded_units in (training, *scored.values())),
        seconds=round(time.perf_counter() - start, 3),
    )


def _check_precision(settings: Settings, machine: Machine) -> None:
    """Raise InputError if the device of a training does not support its mixed precision."""
    name = settings.mixed_precision
    on_cpu = machine.device == "cpu" or torch.accelerator.current_accelerator() is None
    reason = ""
    if on_cpu and name == "fp16":
        reason = "requires a GPU; on a CPU, use bf16 or no"
    elif name == "bf16" and not (cpu_has_bf16() if on_cpu else _gpu_has_bf16()):
        reason = (
            "is not supported by this CPU; use no"
            if on_cpu
            else "is not supported by this GPU; use fp16"
        )
    if reason:
        raise InputError(Problem(settings.model, None, f"mixed precision {name} {reason}"))


def cpu_has_bf16() -> bool:
    """Return whether mixed precision bf16 runs on this CPU."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _gpu_has_bf16() -> bool:
    is_cuda = torch.cuda.is_available()
    return not is_cuda or torch.cuda.is_bf16_supported(including_emulation=False)


def _freeze(scorer: Scorer, settings: Settings) -> None:
    try:
        freeze(scorer.encoder, settings.frozen_layers)
        if not any(weights.requires_grad for weights in scorer.parameters()):
            raise ValueError(
                f"frozen layers: {settings.frozen_layers}; no weights are left to train"
            )
    except ValueError as error:
        raise InputError(Problem(settings.model, None, str(error))) from None


class _Trainer(Trainer):
    """The Trainer with the losses of this module; an evaluation returns scores and labels without loss."""

    settings: Settings

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        scores = _scores(model, inputs)
        name, margin = self.settings.objective, self.settings.margin
        loss = objective(name, scores, inputs["labels"], inputs["pairs"], margin)
        return (loss, scores) if return_outputs else loss

    def prediction_step(
        self, model: Any, inputs: Any, prediction_loss_only: bool, ignore_keys: Any = None
    ) -> tuple[None, Tensor, Tensor]:
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad():
            # In float32, as a saved model scores: the forward method of `model` includes autocast.
            scores = Scorer.forward(self.accelerator.unwrap_model(model), **model_inputs(inputs))
            return None, scores.float(), inputs["labels"]


def _scores(model: Any, inputs: Mapping[str, Tensor]) -> Tensor:
    scores: Tensor = model(**model_inputs(inputs))
    return scores


class _Watch(TrainerCallback):
    """Callback that updates the progress bar and removes pickled files."""

    def __init__(self, progress: Progress, label: str) -> None:
        self._progress, self._label = progress, label
        self._bar: Iterator[int] = iter(())

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        steps = range(state.max_steps)
        self._bar = iter(self._progress(steps, self._label, len(steps)))
        for _done in range(state.global_step):
            next(self._bar, None)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        next(self._bar, None)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        for _left in self._bar:
            pass

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if state.is_world_process_zero:
            folder = Path(str(args.output_dir), f"checkpoint-{state.global_step}")
            (folder / "training_args.bin").unlink(missing_ok=True)


def _trainer(
    settings: Settings, scorer: Scorer, arguments: TrainingArguments, training: Units,
    validation: Subset[Any], tokens: Tokens,
) -> _Trainer:  # fmt: skip
    trainer = _Trainer(
        model=scorer,
        args=arguments,
        data_collator=Batches(tokens.tokenizer.pad_token_id),
        train_dataset=training,
        eval_dataset=validation,
        compute_metrics=_metrics,
    )
    trainer.settings = settings
    trainer.remove_callback(PrinterCallback)
    return trainer


def _training_counts(
    training_rows: Sequence[Instance], together: Sequence[Sequence[Instance]]
) -> dict[str, int]:
    trained = sum(map(len, together))
    paired = sum(len(unit) for unit in together if len(unit) == 2)
    return {"trained": trained, "in_pairs": paired, "left_out": len(training_rows) - trained}


def _arguments(
    settings: Settings, n_units: int, folder: Path, machine: Machine
) -> TrainingArguments:
    at_once, accumulated = _shares(settings, machine)
    step = at_once * accumulated * processes()
    steps = settings.epochs * math.ceil(n_units / step)
    arguments = TrainingArguments(
        output_dir=str(folder.resolve()),
        seed=(seed := settings.seeds[0]),
        data_seed=seed,
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=at_once,
        gradient_accumulation_steps=accumulated,
        per_device_eval_batch_size=EVALUATION_ROWS,
        optim="adamw_torch",
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        max_grad_norm=0.0,  # The authors' program does not clip gradients.
        lr_scheduler_type="linear",
        warmup_steps=math.ceil(settings.warmup * steps),
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        save_total_limit=2,
        load_best_model_at_end=(best := settings.select == "best"),
        metric_for_best_model=CHOSEN_BY if best else None,
        greater_is_better=True if best else None,
        use_cpu=machine.device == "cpu",
        ddp_find_unused_parameters=False,
        label_names=["labels"],
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available() and machine.device != "cpu",
        disable_tqdm=True,
        report_to="none",
        log_level="error",
        bf16=settings.mixed_precision == "bf16",
        fp16=settings.mixed_precision == "fp16",
    )
    # `accelerate launch --mixed_precision` would change the training, but not its signature.
    arguments.mixed_precision = settings.mixed_precision
    if arguments.n_gpu > 1:
        # With several GPUs and no launcher, DataParallel would split batches between the passes of a row.
        arguments._n_gpu = 1
    return arguments


def _shares(settings: Settings, machine: Machine) -> tuple[int, int]:
    """Return the number of units per device and the number of gradient accumulation steps."""
    per_unit = 2 if settings.has_quad else 1
    per_device, remainder = divmod(settings.batch, per_unit * processes())
    at_once = min(per_device, (machine.rows_at_once or settings.batch) // per_unit)
    if remainder:
        fault = f"batch is {settings.batch}; expected a multiple of {per_unit * processes()}"
        fault += f" ({processes()} processes, {per_unit} rows per unit)"
    elif at_once < 1 or per_device % at_once:
        fault = (
            f"rows at once is {machine.rows_at_once}; expected a divisor of {per_device * per_unit}"
        )
        fault += f", at least {per_unit}"
    else:
        return at_once, per_device // at_once
    raise InputError(Problem(settings.model, None, fault))


def _go_on_from(folder: Path) -> str | None:
    """Return the checkpoint to resume from; process 0 first removes incomplete ones."""
    if is_first():
        discard_broken(folder)
    if torch.distributed.is_initialized():  # Since the Trainer was created.
        torch.distributed.barrier()
    checkpoint = last_whole(folder)
    log.debug(
        "resuming from %s", checkpoint or "no checkpoint: this training starts from the beginning"
    )
    return None if checkpoint is None else os.fspath(checkpoint.resolve())


def _metrics(evaluated: Any) -> dict[str, float]:
    scores = np.asarray(evaluated.predictions, dtype=np.float64)
    labels = np.asarray(evaluated.label_ids, dtype=np.float64)
    metrics = correlations(scores, labels, np.arange(len(labels)), resamples=0)
    spearman, pearson = metrics["spearman"].value, metrics["pearson"].value
    chosen_by = UNDEFINED if math.isnan(spearman) else spearman
    return {"spearman": spearman, "pearson": pearson, CHOSEN_BY: chosen_by}


def _epochs(history: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, float], ...]:
    losses = {round(entry["epoch"]): entry["loss"] for entry in history if "loss" in entry}
    return tuple(
        {
            "epoch": (epoch := round(entry["epoch"])),
            "loss": losses.get(epoch, math.nan),
            "spearman": entry["eval_spearman"],
            "pearson": entry["eval_pearson"],
        }
        for entry in history
        if "eval_spearman" in entry
    )


def _best_epoch(history: Sequence[Mapping[str, Any]]) -> int:
    evaluated = [entry for entry in history if f"eval_{CHOSEN_BY}" in entry]
    best = max(evaluated, key=lambda entry: float(entry[f"eval_{CHOSEN_BY}"]))
    best_epoch: int = round(best["epoch"])
    return best_epoch
