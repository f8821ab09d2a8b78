# SPDX-License-Identifier: Apache-2.0
"""What the library costs in a step: of processor time, and of the time between steps.

A step computes, and exchanges gradients as DistributedDataParallel does; with the library it also asks
for events and reports its progress. Rounds with and without it take turns, the first of each pair in
turn, so that other work on the machine meets both.
"""

import json
import math
import resource
import statistics
import time

import torch
import torch.distributed as dist

from kuota import elastic

STEPS, PAIRS = 8, 200

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


step = 0


def library():
    global step
    step += 1
    elastic.elastic_event_detected()
    elastic.progress(step=step, samples=16 * step, loss=1.0)


def nothing():
    pass


measure(library)
used, ratios, took = [], [], []
for pair in range(PAIRS):
    calls = [nothing, library]
    rounds = {call: measure(call) for call in (calls if pair % 2 else reversed(calls))}
    used.append(rounds[library][0] - rounds[nothing][0])
    ratios.append(rounds[library][1] / rounds[nothing][1])
    took.append(rounds[nothing][1])
if dist.get_rank() == 0:
    ratios.sort()
    off = math.ceil(0.98 * math.sqrt(PAIRS))  # the 95 % interval of a median, by ranks
    low, high = ratios[PAIRS // 2 - off - 1], ratios[PAIRS // 2 + off]
    print(json.dumps({"event": "cost", "used": statistics.median(used), "step": statistics.median(took), "ratio": statistics.median(ratios), "low": low, "high": high}), flush=True)
dist.barrier()
dist.destroy_process_group()
