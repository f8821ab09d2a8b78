# SPDX-License-Identifier: Apache-2.0
"""Learns that the size will change, and lets all workers know it after the same step."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from datetime import timedelta
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

# The workers exchange whether one was asked to stop about once in so many microseconds, and at most
# once in each step.
INTERVAL = 200_000

# The exit code of workers that stop for a change of size. torchrun takes 0 for the end of training.
STOPPED = 75


class _Watch:
    """Whether this worker was asked to stop, and what the workers have agreed on.

    A flag is exchanged among all workers without waiting: the exchange that one call begins is read by
    the next, when a step has passed. So no worker waits for another, and all learn it in the same call.
    The longest step of a worker is exchanged too: all leave out the same calls while steps are short.
    The group is one of gloo: the flag never waits for a GPU.
    """

    def __init__(self) -> None:
        self.asked = False
        self.agreed = False
        self.group: dist.ProcessGroup | None = None
        self.exchanged = torch.zeros(2, dtype=torch.int64)  # whether one was asked, and the microseconds of a step
        self.work: dist.Work | None = None
        self.calls = self.next = 0  # so far, and the one that begins the next exchange
        self.began = (time.monotonic(), 0)  # when the last exchange began, and in which call
        self.before = signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if callable(self.before):
            self.before(number, frame)

    def detected(self) -> bool:
        if self.agreed or not dist.is_initialized() or dist.get_world_size() == 1:
            self.agreed = self.agreed or self.asked
            return self.agreed
        if self.group is None:
            self.group = dist.new_group(backend="gloo")
        if self.work is not None:
            self.work.wait()
            self.work = None
            asked, step = self.exchanged.tolist()
            self.agreed, self.next = bool(asked), self.calls + INTERVAL // max(1, step)
        if not self.agreed and self.calls >= self.next:
            now, (before, call) = time.monotonic(), self.began
            step = int((now - before) * 1_000_000) // max(1, self.calls - call)
            self.exchanged = torch.tensor([self.asked, step], dtype=torch.int64)
            self.work = dist.all_reduce(self.exchanged, dist.ReduceOp.MAX, self.group, async_op=True)
            self.began = (now, self.calls)
        self.calls += 1
        return self.agreed


_watch: _Watch | None = None


def watch() -> None:
    """Begins to listen for SIGTERM. A handler that the script had set is called too."""
    global _watch
    if _watch is None:
        _watch = _Watch()


def elastic_event_detected() -> bool:
    """Reports whether the workers have to save and end, because the size will change.

    Call it once in each step, on every worker. Once one of them was sent SIGTERM, by torchrun because pods
    come, or by Kubernetes because its pod goes, it is true on all of them after the same step: at the
    latest two steps, or half a second, later. It exchanges a flag in the background of a step, and waits
    for none.
    """
    watch()
    assert _watch is not None
    return _watch.detected()


def stop() -> None:
    """Ends this worker, so that torchrun starts it again with the new number of workers.

    It does not wait for workers that have gone, and runs no exit handlers.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(STOPPED)


def scale_config() -> dict[str, str]:
    """Returns the values of scaleConfig for the number of pods there are; empty for none."""
    by_size: dict[str, dict[str, Any]] = json.loads(os.environ.get("KUOTA_SCALE_CONFIG") or "{}")
    return {name: str(value) for name, value in by_size.get(os.environ.get("GROUP_WORLD_SIZE", "1"), {}).items()}
