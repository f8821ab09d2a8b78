# SPDX-License-Identifier: Apache-2.0
"""Runs a model on every line of a file, each once, with as many workers as there are.

DATA is the file; without it, lines are generated. OUTPUT is a folder that all pods can write to: its files part-*.jsonl have the
results, and done how many lines have one. Replace Model by yours.
"""

import json
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from kuota import elastic
from torch import nn


class Model:
    """Scores lines by a random projection of their bytes."""

    def __init__(self, device):
        torch.manual_seed(0)
        self.device, self.layers = device, nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1)).to(device)

    @torch.no_grad()
    def __call__(self, lines):
        counts = torch.stack([torch.bincount(torch.tensor(list(line.encode()) or [0]), minlength=256).float() for line in lines])
        return self.layers(counts.to(self.device)).squeeze(1).tolist()


def main():
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else torch.device("cpu")
    dist.init_process_group("gloo", timeout=timedelta(minutes=5))
    settings = {**os.environ, **elastic.scale_config()}
    lines = Path(settings["DATA"]).read_text().splitlines() if "DATA" in settings else [f"line {i}" for i in range(5000)]
    output = Path(settings.get("OUTPUT", "/tmp/output"))
    output.mkdir(parents=True, exist_ok=True)
    done, first = output / "done", dist.get_rank() == 0
    found = [int(done.read_text()) if done.exists() else 0]
    dist.broadcast_object_list(found)  # a shared volume can show workers different files
    if first:
        for part in output.glob("part-*.jsonl"):  # of a batch that was not done
            if int(part.stem.removeprefix("part-")) >= found[0]:
                part.unlink()
    dist.barrier()

    model = Model(device)
    sampler = elastic.Sampler(len(lines), batch=int(settings.get("GLOBAL_BATCH", "64")), shuffle=False)
    sampler.position = found[0]
    for step, indices in enumerate(sampler, start=1):
        begin = sampler.position + sampler.share().start
        if indices:
            part = output / f"part-{begin:012d}.jsonl"
            part.write_text("".join(json.dumps({"line": i, "score": score}) + "\n" for i, score in zip(indices, model([lines[i] for i in indices]), strict=True)))
        dist.barrier()
        sampler.done()
        if first:
            new = output / ".done"
            new.write_text(str(sampler.position))
            new.replace(done)
        elastic.progress(step=step, samples=sampler.position)
        if elastic.elastic_event_detected():
            dist.barrier()
            elastic.stop()  # torchrun starts the workers again, with the new number of them
    if first:
        print(f"{len(lines)} lines have a result in {output}.", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
