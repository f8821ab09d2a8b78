# SPDX-License-Identifier: Apache-2.0
"""Learns that the size will change, and lets all workers know it after the same step."""

from __future__ import annotations

import json
import os
import signal
from datetime import timedelta
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

# The exit code of workers that stop for a change of size. torchrun takes 0 for the end of training.
STOPPED = 75


class _Watch:
    """Whether this worker was asked to stop, and what the workers have agreed on.

    Each call exchanges a flag among all workers without waiting: the exchange that one call begins is
    read by the next, when a step has passed. So no worker waits for another, and all learn it in the
    same call. The group is one of gloo: the flag never waits for a GPU.
    """

    def __init__(self) -> None:
        self.asked = False
        self.agreed = False
        self.group: dist.ProcessGroup | None = None
        self.flag = torch.zeros(1, dtype=torch.int32)
        self.work: dist.Work | None = None
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
            self.agreed = bool(self.flag.item())
        if not self.agreed:
            self.flag.fill_(self.asked)
            self.work = dist.all_reduce(self.flag, dist.ReduceOp.MAX, self.group, async_op=True)
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
    latest two steps later. It exchanges a flag in the background of a step, and waits for none.
    """
    watch()
    assert _watch is not None
    return _watch.detected()


def stop() -> None:
    """Ends this worker, so that torchrun starts it again with the new number of workers.

    It does not wait for workers that have gone, and runs no exit handlers.
    """
    import sys

    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(STOPPED)


def scale_config() -> dict[str, str]:
    """Returns the values of scaleConfig for the number of pods there are; empty for none."""
    by_size: dict[str, dict[str, Any]] = json.loads(os.environ.get("KUOTA_SCALE_CONFIG") or "{}")
    return {name: str(value) for name, value in by_size.get(os.environ.get("GROUP_WORLD_SIZE", "1"), {}).items()}
