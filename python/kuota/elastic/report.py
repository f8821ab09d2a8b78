# SPDX-License-Identifier: Apache-2.0
"""One line of JSON for each event, on standard output."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from typing import Any


def line(event: str, **values: Any) -> None:
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    print(json.dumps({"time": now, "event": event, "world": world(), **values}), flush=True)


def world() -> int:
    """Returns the number of workers."""
    return int(os.environ.get("WORLD_SIZE") or 1)
