# SPDX-License-Identifier: Apache-2.0
"""The loop of an elastic training: one global batch at every number of workers, and checkpoints."""

import contextlib
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from kuota import elastic
from kuota.elastic import checkpoint
from torch.nn.parallel import DistributedDataParallel


def start():
    """Joins the workers. Returns the device of this one, and the settings: the environment and the variables of the size."""
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    # A worker can disappear while others wait for it: the timeout ends the wait.
    dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=timedelta(minutes=5))
    torch.manual_seed(0)
    return device, {**os.environ, **elastic.scale_config()}


def spread(model, device, blocks=None):
    """Spreads a model over the workers: a copy on each, or, with its blocks, a part of each block (FSDP)."""
    model.to(device)
    if blocks is None:
        return DistributedDataParallel(model, device_ids=[device] if device.type == "cuda" else None)
    from torch.distributed.fsdp import fully_shard

    for block in [*blocks, model]:
        fully_shard(block)
    return model


def _exchange(model, wanted):
    """Leaves out the exchange of gradients unless it is wanted."""
    if isinstance(model, DistributedDataParallel):
        return contextlib.nullcontext() if wanted else model.no_sync()
    model.set_requires_gradient_sync(wanted)
    return contextlib.nullcontext()


def train(model, optimizer, sampler, loss_of, settings):
    """Trains to the end of the sampler. loss_of returns the sum of the losses of samples, by their indices."""
    folder, interval = settings.get("CHECKPOINT"), int(settings.get("CHECKPOINT_STEPS", "100"))
    state = checkpoint.Application(model, optimizer, sampler=sampler)
    step = (checkpoint.load(folder, state) if folder else None) or 0
    if not folder and dist.get_rank() == 0:
        print("No CHECKPOINT: the training begins again whenever its size changes. Mount a claim that all pods can write to.", flush=True)

    def save():
        if folder:
            checkpoint.save(folder, step, state)

    for indices in sampler:
        share, total = sampler.share(), 0
        parts = list(share.parts(indices))
        optimizer.zero_grad()
        for i, part in enumerate(parts):
            with _exchange(model, i == len(parts) - 1):
                loss = loss_of(part)
                (loss * share.scale).backward()
                total += loss.detach()
        optimizer.step()
        sampler.done()
        step += 1
        elastic.progress(step=step, samples=sampler.position, loss=total / max(1, share.local_batch))
        if elastic.elastic_event_detected():
            save()
            elastic.stop()  # torchrun starts the workers again, with the new number of them
        if step % interval == 0:
            save()
    save()
    if dist.get_rank() == 0:
        print(f"Trained {step} steps.", flush=True)
    dist.barrier()
    dist.destroy_process_group()
