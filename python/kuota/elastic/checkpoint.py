# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that any number of workers can read, by torch.distributed.checkpoint.

A checkpoint is a folder step-00001200. It is written under another name and renamed when all workers
have written their part, so that a folder of that name is always complete.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.optim import Optimizer

from . import metrics, report

_NAME = re.compile(r"step-(\d{8})")


class Application:
    """What a checkpoint contains: a model, its optimizer, and other values.

    others are objects with state_dict and load_state_dict, such as a Sampler or a learning rate schedule.
    """

    def __init__(self, model: nn.Module, optimizer: Optimizer, **others: Any) -> None:
        self.model, self.optimizer, self.others = model, optimizer, others

    def numbers(self) -> dict[str, int | float]:
        """Returns the numbers among the other values, such as the position of a Sampler."""
        return {name: v for o in self.others.values() for name, v in o.state_dict().items() if isinstance(v, (int, float))}

    def state_dict(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "others": {name: o.state_dict() for name, o in self.others.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        for name, o in self.others.items():
            o.load_state_dict(state["others"][name])


def save(folder: str | Path, step: int, state: Application, keep: int = 2) -> Path:
    """Writes a checkpoint of a step, on all workers, and returns its folder.

    All workers must be able to write to the folder. Only the latest so many are kept.
    """
    began = time.monotonic()
    folder = Path(folder)
    final, parts = folder / f"step-{step:08d}", folder / f".step-{step:08d}.new"
    written = not _agreed(final.exists())
    if written:  # otherwise the workers stop at a step that was saved just now
        if _rank() == 0:
            shutil.rmtree(parts, ignore_errors=True)
            parts.mkdir(parents=True)
        _barrier()
        dcp.save({"application": state}, checkpoint_id=parts)
        _barrier()
        if _rank() == 0:
            os.replace(parts, final)
            _sync(folder)
            for old in _complete(folder)[:-keep]:
                shutil.rmtree(old, ignore_errors=True)
    if _rank() == 0:
        size, seconds = sum(f.stat().st_size for f in final.rglob("*") if f.is_file()), round(time.monotonic() - began, 3)
        metrics.wrote_checkpoint(final.stat().st_mtime, seconds if written else None)
        report.line("checkpoint", step=step, **state.numbers(), folder=str(final), seconds=seconds, bytes=size)
    return final


def load(folder: str | Path, state: Application) -> int | None:
    """Reads the latest checkpoint into state, on all workers, and returns its step; None if there is none.

    The number of workers and the sharding can differ from those that wrote it.
    """
    began = time.monotonic()
    complete = _complete(Path(folder))
    latest = _agreed(complete[-1].name if complete else None)
    if latest is None:
        return None
    dcp.load({"application": state}, checkpoint_id=Path(folder) / latest)
    step = int(latest.removeprefix("step-"))
    if _rank() == 0:
        metrics.loaded_checkpoint((Path(folder) / latest).stat().st_mtime)
        report.line("loaded", step=step, **state.numbers(), folder=str(Path(folder) / latest), seconds=round(time.monotonic() - began, 3))
    return step


def _agreed(value: Any) -> Any:
    """Returns what rank 0 sees, on all workers: a shared volume can show them different files."""
    found = [value]
    if dist.is_initialized():
        dist.broadcast_object_list(found)
    return found[0]


def _complete(folder: Path) -> list[Path]:
    """Returns the checkpoints of a folder, the oldest first."""
    return sorted(p for p in folder.glob("step-*") if _NAME.fullmatch(p.name)) if folder.exists() else []


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def _barrier() -> None:
    if dist.is_initialized():
        dist.barrier()
