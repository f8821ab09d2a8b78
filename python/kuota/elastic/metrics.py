# SPDX-License-Identifier: Apache-2.0
"""How far a training is, for people who do not read its script: metrics for Prometheus, and a line in the log.

Only the first worker reports. It needs no PyTorch, waits for no other worker, and never ends a training.
"""

from __future__ import annotations

import math
import os
import socket
import sys
import threading
import time
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from . import report

# The least seconds between two lines.
INTERVAL = 10.0

# The port of the metrics unless KUOTA_METRICS_PORT has another one; 0 serves none.
PORT = 9464


class _Training:
    """What this worker knows of its training. Times are Unix seconds; None is unknown."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.step = 0
        self.samples: float | None = None  # trained on, as the script counts them
        self.first: float | None = None  # samples of the first call
        self.rate: float | None = None  # samples a second, between the last two lines
        self.loss: float | None = None  # of the last line
        self.checkpoint: float | None = None  # when the last one was written
        self.checkpoint_seconds: float | None = None  # how long that took
        self.continued_from: float | None = None  # when the one was written that was loaded
        self.line_at: float | None = None  # time.monotonic() of the last line
        self.line_samples: float | None = None

    def update(self, now: float, step: int, samples: float | None, loss: Any) -> bool:
        """Takes the values of a step, and reports whether it is time for a line. Only then is the loss converted."""
        self.step, self.samples = step, samples
        if self.first is None:
            self.first = samples
        if self.line_at is not None and now - self.line_at < INTERVAL:
            return False
        if self.line_at is not None and samples is not None and self.line_samples is not None:
            self.rate = max(0.0, samples - self.line_samples) / (now - self.line_at)
        self.line_at, self.line_samples = now, samples
        self.loss = _number(loss)
        return True

    def line(self) -> dict[str, Any]:
        """Returns the values of a line; those that are unknown are left out."""
        values = {
            "step": self.step, "samples": self.samples, "samples_per_second": None if self.rate is None else round(self.rate, 3),
            "loss": self.loss if self.loss is None or math.isfinite(self.loss) else str(self.loss), "started": _time(self.started),
            "checkpoint": _time(self.checkpoint), "checkpoint_seconds": self.checkpoint_seconds, "continued_from": _time(self.continued_from),
        }
        return {name: value for name, value in values.items() if value is not None}

    def text(self) -> str:
        """Returns the metrics in Prometheus' text format."""
        trained = None if self.samples is None or self.first is None else max(0.0, self.samples - self.first)
        world = f'{{world_size="{report.world()}"}}'  # so that rates of different sizes are different series
        out = []
        for name, kind, labels, value, about in [
            ("step", "gauge", "", self.step, "Step that the training is at."),
            ("samples_total", "counter", world, trained, "Samples trained on since the workers started."),
            ("loss", "gauge", "", self.loss, "Loss of a step in the last seconds."),
            ("start_time_seconds", "gauge", "", self.started, "When the workers started."),
            ("last_checkpoint_timestamp_seconds", "gauge", "", self.checkpoint, "When the last checkpoint was written."),
            ("last_checkpoint_duration_seconds", "gauge", "", self.checkpoint_seconds, "How long writing the last checkpoint took."),
            ("continued_from_timestamp_seconds", "gauge", "", self.continued_from, "When the checkpoint was written that the workers continued from."),
        ]:
            if value is not None:
                out.append(f"# HELP kuota_training_{name} {about}\n# TYPE kuota_training_{name} {kind}\nkuota_training_{name}{labels} {_text(value)}\n")
        return "".join(out)


_training = _Training(time.time())
_serving = False


def progress(step: int, samples: float | None = None, loss: Any = None) -> None:
    """Reports how far the training is. Call it once in each step, on every worker.

    samples counts those that were trained on from the beginning, such as sampler.position. loss is a number or a
    tensor: it is converted, which waits for the GPU, once in INTERVAL seconds.
    """
    if _rank() != 0:
        return
    if _training.update(time.monotonic(), step, samples, loss):
        _serve()
        report.line("progress", **_training.line())


def wrote_checkpoint(at: float, seconds: float | None) -> None:
    """Notes a checkpoint of this worker, in Unix seconds. seconds is how long it took, None if it was there already."""
    _training.checkpoint = at
    if seconds is not None:
        _training.checkpoint_seconds = seconds


def loaded_checkpoint(at: float) -> None:
    """Notes the checkpoint that this worker continues from, by when it was written."""
    _training.checkpoint = _training.continued_from = at


def _rank() -> int:
    """Returns the rank among all workers. Where PyTorch is not used, it is that of torchrun."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        return int(dist.get_rank())
    return int(os.environ.get("RANK") or 0)


def _number(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError, RuntimeError):  # such as a tensor of several numbers
        return None


def _text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


def _time(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds")


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.split("?")[0] != "/metrics":
            self.send_error(404)
            return
        body = _training.text().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Writes nothing: the log is that of the training."""


def _serve() -> None:
    """Serves the metrics, once. A port that cannot be used is one line on standard error."""
    global _serving
    if _serving:
        return
    _serving = True
    text = os.environ.get("KUOTA_METRICS_PORT", "")
    try:
        port = int(text or PORT)
        if port > 65535:
            raise ValueError("the highest port is 65535")
        if port > 0:
            listen(port)
    except (OSError, ValueError) as error:
        print(f"kuota.elastic: no metrics on port {text or PORT} (KUOTA_METRICS_PORT): {error}", file=sys.stderr, flush=True)


def listen(port: int) -> ThreadingHTTPServer:
    """Serves the metrics on a port in a thread that ends with the process; on any free port for 0."""
    both = socket.has_dualstack_ipv6()
    with socket.create_server(("", port), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both) as listening:
        server = ThreadingHTTPServer(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        server.socket.close()
        server.socket = socket.socket(fileno=listening.detach())
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="kuota-metrics", daemon=True).start()
    return server
