# SPDX-License-Identifier: Apache-2.0
"""What elastic_event_detected() costs in a step: of processor time, and of the time between steps.

A step computes, and exchanges gradients as DistributedDataParallel does. Rounds with and without the
call alternate, so that other work on the machine meets both.
"""

import json
import resource
import statistics
import time

import torch
import torch.distributed as dist

from kuota import elastic

STEPS, ROUNDS = 100, 8

dist.init_process_group("gloo")
matrix, gradients = torch.randn(150, 150), torch.zeros(100_000)


def seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(call):
    """Returns the processor time and the duration of a step, in milliseconds."""
    dist.barrier()
    used, began = seconds(), time.monotonic()
    for _ in range(STEPS):
        for _ in range(5):
            matrix @ matrix
        dist.all_reduce(gradients)
        call()
    return (seconds() - used) * 1000 / STEPS, (time.monotonic() - began) * 1000 / STEPS


measure(elastic.elastic_event_detected)
without, with_call = [], []
for _ in range(ROUNDS):
    without.append(measure(lambda: None))
    with_call.append(measure(elastic.elastic_event_detected))
if dist.get_rank() == 0:
    median = {name: [round(statistics.median(r[i] for r in rounds), 3) for i in range(2)] for name, rounds in {"without": without, "with": with_call}.items()}
    print(json.dumps({"event": "cost", **median}), flush=True)
dist.barrier()
dist.destroy_process_group()
