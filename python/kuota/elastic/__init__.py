# SPDX-License-Identifier: Apache-2.0
"""What a training needs that changes its size: see docs/elastic-training.md.

    from kuota import elastic
    from kuota.elastic import checkpoint

It needs PyTorch 2.6 or newer, and nothing else. Sampler, global_batch and progress need no PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .data import Sampler, Share, global_batch
from .metrics import progress

if TYPE_CHECKING:
    from .events import STOPPED, elastic_event_detected, scale_config, stop

__all__ = ["STOPPED", "Sampler", "Share", "elastic_event_detected", "global_batch", "progress", "scale_config", "stop"]


def __getattr__(name: str) -> Any:
    """Imports PyTorch only for what needs it."""
    if name in __all__:
        from . import events

        return getattr(events, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
