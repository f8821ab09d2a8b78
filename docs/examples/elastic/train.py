# SPDX-License-Identifier: Apache-2.0
"""An elastic training on CPUs, started by torchrun: a small classifier.

The number of workers changes while it runs. Five things make the script elastic:

* The position in the planned order of samples is part of the checkpoint, so that each
  position is trained on once, however many workers there are.
* A global batch is split over the workers there are. Its size, and with it the update of
  the parameters, is the same at every number of workers.
* Rank 0 writes checkpoints, to a temporary file that is then renamed. When workers start,
  rank 0 reads the last one and sends it to the others.
* On SIGTERM all workers agree to stop after the same step, and write a checkpoint.
* They then end with an error. torchrun starts them again, with the new number of workers.

Rank 0 prints one line of JSON for each step.
"""

import contextlib
import functools
import json
import os
import signal
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

FEATURES, CLASSES = 32, 10

# Exit code of workers that stop before the end. torchrun takes 0 for the end of training.
STOPPED = 75


def environment():
    """Returns the environment. Values of this size in scaleConfig replace others."""
    by_size = json.loads(os.environ.get("KUOTA_SCALE_CONFIG", "{}"))
    pods = os.environ["GROUP_WORLD_SIZE"]
    return {**os.environ, **by_size.get(pods, {})}


@functools.lru_cache(maxsize=2)  # a batch can have positions of two epochs
def order(epoch, count):
    """Returns the order of the samples in an epoch, which depends on nothing else."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(1000 + epoch)).tolist()


class Samples:
    """The training data in the planned order: a position counts through all epochs."""

    def __init__(self, count, epochs):
        self.count, self.positions = count, count * epochs
        generator = torch.Generator().manual_seed(1)
        self.inputs = torch.randn(count, FEATURES, generator=generator)
        teacher = torch.randn(FEATURES, CLASSES, generator=generator)
        self.labels = (self.inputs @ teacher).argmax(dim=1)

    def at(self, positions):
        """Returns inputs and labels of a tensor of positions."""
        samples = [order(p // self.count, self.count)[p % self.count] for p in positions.tolist()]
        return self.inputs[samples], self.labels[samples]


def share(start, stop, rank, world):
    """Returns which positions of a global batch a worker trains on, as a range.

    The ranges of all workers cover the batch once. Their lengths differ by one at most.
    """
    n = stop - start
    return start + n * rank // world, start + n * (rank + 1) // world


def save(path, state):
    """Writes a checkpoint so that the path has the old or the new one, never a part."""
    temporary = path.with_suffix(".new")
    with open(temporary, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def load(path):
    """Returns the last checkpoint, the same on all workers; None if there is none.

    Only rank 0 reads it: a shared volume can show workers different versions of a file.
    """
    state = [None]
    if dist.get_rank() == 0 and path.exists():
        state = [torch.load(path, map_location="cpu", weights_only=True)]
    dist.broadcast_object_list(state)
    return state[0]


def log(event, **values):
    if dist.get_rank() == 0:
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        line = {"time": now, "event": event, "world": dist.get_world_size(), **values}
        print(json.dumps(line), flush=True)


class Training:
    """Model, optimizer and position, and how they are saved."""

    def __init__(self, env):
        torch.manual_seed(0)
        self.checkpoint = Path(env["CHECKPOINT"])
        self.interval = int(env.get("CHECKPOINT_STEPS", "50"))
        self.batch = int(env.get("GLOBAL_BATCH", "48"))
        self.micro_batch = int(env.get("MICRO_BATCH", "16"))
        self.pace = float(env.get("MIN_STEP_SECONDS", "0"))  # as if the model was large
        self.samples = Samples(int(env.get("SAMPLES", "4800")), int(env.get("EPOCHS", "10")))

        model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES))
        rate = float(env.get("LEARNING_RATE", "0.05"))
        self.optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
        self.step = self.position = 0
        if state := load(self.checkpoint):
            model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.position = state["step"], state["position"]
        self.model = DistributedDataParallel(model)
        self.stopping = False

    def stop(self, *_):
        """Handles SIGTERM. The workers stop after the step that they are in."""
        self.stopping = True

    def save(self):
        if dist.get_rank() == 0:
            save(self.checkpoint, {
                "model": self.model.module.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "step": self.step,
                "position": self.position,
            })
            log("checkpoint", step=self.step, position=self.position)

    def run(self):
        """Trains from the position on. Returns whether that was to the end."""
        log("start", step=self.step, position=self.position)
        while self.position < self.samples.positions:
            began = time.monotonic()
            if self.train_step():
                self.save()
                return self.position == self.samples.positions
            if self.step % self.interval == 0:
                self.save()
            time.sleep(max(0, began + self.pace - time.monotonic()))
        self.save()
        return True

    def train_step(self):
        """Trains on one global batch. Returns on all workers whether one has to stop."""
        rank, world = dist.get_rank(), dist.get_world_size()
        end = min(self.position + self.batch, self.samples.positions)
        first, last = share(self.position, end, rank, world)
        parts = torch.arange(first, last).split(self.micro_batch)
        loss = 0.0
        self.optimizer.zero_grad()
        for i, part in enumerate(parts):
            # Gradients are exchanged with the last part only.
            with contextlib.nullcontext() if i == len(parts) - 1 else self.model.no_sync():
                inputs, labels = self.samples.at(part)
                of_part = cross_entropy(self.model(inputs), labels, reduction="sum")
                # DistributedDataParallel divides by the number of workers; the gradient
                # must be the mean over the global batch, whatever the share of each.
                (of_part * world / (end - self.position)).backward()
                loss += of_part.item()
        self.optimizer.step()

        mine = torch.tensor([loss, first, last, self.stopping], dtype=torch.float64)
        all_workers = [torch.zeros_like(mine) for _ in range(world)]
        dist.all_gather(all_workers, mine)
        losses, firsts, lasts, stopping = torch.stack(all_workers).T.tolist()
        begin, self.position, self.step = self.position, end, self.step + 1
        shares = [[int(a), int(b)] for a, b in zip(firsts, lasts)]
        positions = {"from": begin, "to": end, "shares": shares}
        log("step", step=self.step, loss=sum(losses) / (end - begin), **positions)
        return any(stopping)


def main():
    # A worker can disappear while others wait for it: the timeout ends the wait.
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    training = Training(environment())
    signal.signal(signal.SIGTERM, training.stop)
    complete = training.run()
    log("end" if complete else "stop", step=training.step, position=training.position)
    if not complete:
        os._exit(STOPPED)  # without waiting for workers that have gone
    dist.barrier()  # rank 0 has written the last checkpoint
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
