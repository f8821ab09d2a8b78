# SPDX-License-Identifier: Apache-2.0
"""Tests of kuota.elastic that need no PyTorch."""

import contextlib
import io
import json
import os
import random
import re
import socket
import sys
import unittest
import urllib.error
import urllib.request
from collections.abc import Iterator
from unittest import mock

from kuota import elastic
from kuota.elastic import metrics


class GlobalBatch(unittest.TestCase):
    def test_shares_cover_the_batch_once(self) -> None:
        for batch, world in [(48, 1), (50, 3), (50, 4), (50, 6), (5, 8), (1, 1)]:
            shares = [elastic.global_batch(batch, 16, rank, world) for rank in range(world)]
            self.assertEqual([i for s in shares for i in range(s.start, s.stop)], list(range(batch)))
            self.assertLessEqual(max(s.local_batch for s in shares) - min(s.local_batch for s in shares), 1)
            for s in shares:
                parts = list(s.parts(list(range(s.start, s.stop))))
                self.assertEqual(len(parts), s.steps)
                self.assertEqual([i for part in parts for i in part], list(range(s.start, s.stop)))
                self.assertLessEqual(max(len(part) for part in parts), 16)
                self.assertEqual(s.scale, world / batch)

    def test_wrong_values(self) -> None:
        for values in [(0, None, 0, 1), (8, None, 2, 2), (8, None, -1, 2), (8, 0, 0, 1)]:
            with self.assertRaises(ValueError):
                elastic.global_batch(*values)


class Samples(unittest.TestCase):
    def test_each_sample_of_an_epoch_once_at_any_number_of_workers(self) -> None:
        chance = random.Random(1)
        for _ in range(100):
            count, batch, epochs = chance.randint(1, 40), chance.randint(1, 20), chance.randint(1, 3)
            state, seen = {"position": 0}, []
            while state["position"] < count * epochs:
                world = chance.randint(1, 7)  # a change of size, and what the checkpoint has
                workers = [elastic.Sampler(count, batch, epochs, seed=3, rank=rank, world=world) for rank in range(world)]
                for w in workers:
                    w.load_state_dict(state)
                steps = chance.randint(1, 4)
                for _step, indices in zip(range(steps), zip(*workers, strict=True)):
                    seen += [i for of_worker in indices for i in of_worker]
                    for w in workers:
                        w.done()
                state = workers[0].state_dict()
            plan = elastic.Sampler(count, batch, epochs, seed=3)
            self.assertEqual(seen, [plan.index(p) for p in range(count * epochs)])
            for epoch in range(epochs):
                self.assertEqual(sorted(seen[epoch * count : (epoch + 1) * count]), list(range(count)))

    def test_the_order_depends_on_seed_and_epoch(self) -> None:
        def order(seed: int, epoch: int) -> list[int]:
            s = elastic.Sampler(100, 10, epochs=2, seed=seed)
            return [s.index(epoch * 100 + i) for i in range(100)]

        self.assertEqual(order(1, 0), order(1, 0))
        self.assertNotEqual(order(1, 0), order(1, 1))
        self.assertNotEqual(order(1, 0), order(2, 0))
        self.assertEqual([elastic.Sampler(9, 4, shuffle=False).index(i) for i in range(9)], list(range(9)))

    def test_what_is_asked_for_early_is_not_done(self) -> None:
        s = elastic.Sampler(10, 4, rank=0, world=1)
        batches = list(s)  # as a DataLoader with many workers
        self.assertEqual([len(b) for b in batches], [4, 4, 2])
        self.assertEqual((len(s), s.position), (3, 0))
        s.done()
        self.assertEqual((len(s), s.state_dict()), (2, {"position": 4}))
        s.done()
        self.assertEqual(s.share().local_batch, 2)
        s.done()
        self.assertEqual((len(s), s.position, list(s)), (0, 10, []))

    def test_wrong_values(self) -> None:
        for values in [(0, 1, 1), (1, 0, 1), (1, 1, 0)]:
            with self.assertRaises(ValueError):
                elastic.Sampler(*values)


class Loss:
    """A tensor on a device: converting it waits for the device."""

    def __init__(self, value: float) -> None:
        self.value, self.waits = value, 0

    def __float__(self) -> float:
        self.waits += 1
        return self.value


class Progress(unittest.TestCase):
    def setUp(self) -> None:
        for name, value in [("_training", metrics._Training(1_000_000_000.5)), ("_serving", False)]:
            patch = mock.patch.object(metrics, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.environment(KUOTA_METRICS_PORT="0", RANK="0", WORLD_SIZE="4")

    def environment(self, **values: str) -> None:
        patch = mock.patch.dict(os.environ, values)
        patch.start()
        self.addCleanup(patch.stop)

    def lines(self, calls: list[tuple[float, dict[str, object]]]) -> list[dict[str, object]]:
        """Returns the lines of calls, each at a time in seconds."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            for at, values in calls:
                with mock.patch("time.monotonic", return_value=at):
                    elastic.progress(**values)
        return [json.loads(line, parse_constant=self.fail) for line in out.getvalue().splitlines()]

    def test_a_line_at_most_every_ten_seconds(self) -> None:
        losses = [Loss(1 / (i + 1)) for i in range(200)]
        lines = self.lines([(100 + i / 8, {"step": 50 + i, "samples": 3200 + 64 * i, "loss": loss}) for i, loss in enumerate(losses)])
        self.assertEqual([line["step"] for line in lines], [50, 130, 210])
        self.assertEqual([i for i, loss in enumerate(losses) if loss.waits], [0, 80, 160])
        last = lines[-1]
        self.assertTrue(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", str(last.pop("time"))))
        started = "2001-09-09T01:46:40.500+00:00"
        self.assertEqual(last, {"event": "progress", "world": 4, "step": 210, "samples": 13440, "samples_per_second": 512.0, "loss": 1 / 161, "started": started})
        self.assertNotIn("samples_per_second", lines[0])

    def test_the_last_checkpoint(self) -> None:
        metrics.loaded_checkpoint(1_000_000_000)
        metrics.wrote_checkpoint(1_000_000_060, 2.5)
        metrics.wrote_checkpoint(1_000_000_060, None)  # at a stop just after it
        line = self.lines([(1, {"step": 7})])[0]
        self.assertEqual([line[name] for name in ("checkpoint", "checkpoint_seconds", "continued_from")], ["2001-09-09T01:47:40.000+00:00", 2.5, "2001-09-09T01:46:40.000+00:00"])
        self.assertNotIn("samples", line)
        self.assertNotIn("loss", line)

    def test_odd_losses(self) -> None:
        odd = [float("nan"), float("-inf"), "many", [1, 2]]
        lines = self.lines([(20 * i, {"step": i, "loss": loss}) for i, loss in enumerate(odd)])
        self.assertEqual([line.get("loss") for line in lines], ["nan", "-inf", None, None])
        metrics._training.loss = float("nan")
        self.assertIn("kuota_training_loss NaN\n", metrics._training.text())

    def test_only_the_first_worker(self) -> None:
        self.environment(RANK="3")
        self.assertEqual(self.lines([(1, {"step": 1, "samples": 64})]), [])

    @contextlib.contextmanager
    def served(self) -> Iterator[str]:
        server = metrics.listen(0)
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            server.server_close()

    def test_metrics(self) -> None:
        with self.served() as address:
            self.lines([(1, {"step": 10, "samples": 6400, "loss": 0.5}), (2, {"step": 11, "samples": 7040, "loss": 0.25})])
            metrics.wrote_checkpoint(1_000_000_060.25, 2.5)
            with urllib.request.urlopen(f"{address}/metrics") as response:
                self.assertEqual(response.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
                text = response.read().decode()
            with self.assertRaises(urllib.error.HTTPError) as missing:
                urllib.request.urlopen(f"{address}/")
            missing.exception.close()
        values = [line.removeprefix("kuota_training_") for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual(values, [
            "step 11", 'samples_total{world_size="4"} 640', "loss 0.5", "start_time_seconds 1000000000.5",
            "last_checkpoint_timestamp_seconds 1000000060.25", "last_checkpoint_duration_seconds 2.5",
        ])
        self.assertEqual(text.count("# HELP"), len(values))
        self.assertEqual(text.count("# TYPE"), len(values))

    def test_a_port_never_ends_a_training(self) -> None:
        with socket.create_server(("", 0)) as busy:
            port = str(busy.getsockname()[1])
            for value, want in {port: "Address already in use", "none": "invalid literal", "99999999": "65535", "0": "", "-1": ""}.items():
                self.environment(KUOTA_METRICS_PORT=value)
                err = io.StringIO()
                with contextlib.redirect_stderr(err), mock.patch.object(metrics, "_serving", False), mock.patch.object(metrics, "_training", metrics._Training(0)):
                    lines = self.lines([(1, {"step": 1}), (20, {"step": 2})])
                self.assertEqual(len(lines), 2, value)
                self.assertIn(want, err.getvalue())
                self.assertEqual(err.getvalue().count("\n"), 1 if want else 0, value)


class Module(unittest.TestCase):
    def test_data_needs_no_pytorch(self) -> None:
        self.assertNotIn("torch", sys.modules)
        with self.assertRaises(AttributeError):
            elastic.unknown  # noqa: B018


if __name__ == "__main__":
    unittest.main()
