#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Evaluates one setting of many: each index of the array is one. Replace evaluate by your evaluation."""

import json
import os

import torch

SETTINGS = [{"temperature": t, "prompt": p} for t in (0.0, 0.3, 0.7, 1.0) for p in ("short", "long")]


def evaluate(temperature, prompt):
    """Returns the accuracy of a random classifier on generated data."""
    random = torch.Generator().manual_seed(len(prompt))
    inputs, labels = torch.randn(2000, 64, generator=random), torch.randint(10, (2000,), generator=random)
    scores = inputs @ torch.randn(64, 10, generator=random) + temperature * torch.randn(2000, 10, generator=random)
    return (scores.argmax(dim=1) == labels).float().mean().item()


index = int(os.environ["KUOTA_ARRAY_INDEX"])
setting = SETTINGS[(index - 1) % len(SETTINGS)]
print(json.dumps({"index": index, **setting, "accuracy": evaluate(**setting)}), flush=True)
