# SPDX-License-Identifier: Apache-2.0
"""An elastic training on CPUs, started by python -m kuota.elastic.run: a small classifier.

The number of workers changes while it runs. It goes on from its last checkpoint, with the
same global batch at every number of workers, and trains on each sample of an epoch once.
Rank 0 prints one line of JSON for each step.
"""

import contextlib
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from kuota import elastic
from kuota.elastic import checkpoint, report

FEATURES, CLASSES = 32, 10


def data(count):
    """Returns inputs and labels of so many samples, always the same."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(count, FEATURES, generator=generator)
    teacher = torch.randn(FEATURES, CLASSES, generator=generator)
    return inputs, (inputs @ teacher).argmax(dim=1)


def log(event, **values):
    if dist.get_rank() == 0:
        report.line(event, **values)


def train_step(model, optimizer, inputs, labels, share):
    """Trains on one global batch. Returns the mean loss of the batch and the shares of all workers."""
    loss, parts = 0.0, list(zip(share.parts(inputs), share.parts(labels), strict=True))
    optimizer.zero_grad()
    for i, (x, y) in enumerate(parts):
        # Gradients are exchanged with the last part only.
        with contextlib.nullcontext() if i == len(parts) - 1 else model.no_sync():
            of_part = cross_entropy(model(x), y, reduction="sum")
            (of_part * share.scale).backward()
            loss += of_part.item()
    optimizer.step()
    # For the log: a training that need not prove its shares leaves this exchange out.
    mine = torch.tensor([loss, share.start, share.stop], dtype=torch.float64)
    all_workers = [torch.zeros_like(mine) for _ in range(share.world)]
    dist.all_gather(all_workers, mine)
    losses, starts, stops = torch.stack(all_workers).T.tolist()
    return sum(losses) / share.batch, [[int(a), int(b)] for a, b in zip(starts, stops, strict=True)]


def main():
    # A worker can disappear while others wait for it: the timeout ends the wait.
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    env = {**os.environ, **elastic.scale_config()}
    inputs, labels = data(int(env.get("SAMPLES", "4800")))
    interval, pace = int(env.get("CHECKPOINT_STEPS", "50")), float(env.get("MIN_STEP_SECONDS", "0"))  # as if the model was large
    sampler = elastic.Sampler(len(inputs), batch=int(env.get("GLOBAL_BATCH", "48")), epochs=int(env.get("EPOCHS", "10")), micro_batch=int(env.get("MICRO_BATCH", "16")))

    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES)))
    optimizer = torch.optim.SGD(model.parameters(), lr=float(env.get("LEARNING_RATE", "0.05")), momentum=0.9)
    state = checkpoint.Application(model, optimizer, sampler=sampler)
    step = checkpoint.load(env["CHECKPOINT"], state) or 0
    log("start", step=step, position=sampler.position)

    def save():
        time.sleep(float(env.get("MIN_CHECKPOINT_SECONDS", "0")))
        checkpoint.save(env["CHECKPOINT"], step, state)

    for indices in sampler:
        began, begin = time.monotonic(), sampler.position
        loss, shares = train_step(model, optimizer, inputs[indices], labels[indices], sampler.share())
        sampler.done()
        step += 1
        elastic.progress(step=step, samples=sampler.position, loss=loss)
        log("step", step=step, loss=loss, **{"from": begin, "to": sampler.position}, shares=[[begin + a, begin + b] for a, b in shares])
        if elastic.elastic_event_detected():
            save()
            log("stop", step=step, position=sampler.position)
            elastic.stop()  # torchrun starts the workers again, with the new number of them
        if step % interval == 0:
            save()
        time.sleep(max(0, began + pace - time.monotonic()))
    save()
    log("end", step=step, position=sampler.position)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
