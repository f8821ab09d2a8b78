# SPDX-License-Identifier: Apache-2.0
"""Trains a small classifier of images.

DATA is a folder with one folder of images for each class (the image then needs torchvision); without it, images are generated.
"""

import loop
import torch
from kuota import elastic
from torch import nn
from torch.nn.functional import cross_entropy

CLASSES, SIZE = 10, 32


def generated(count):
    """Returns noisy images of so many patterns, and which each has."""
    random = torch.Generator().manual_seed(0)
    patterns = torch.randn(CLASSES, 3, SIZE, SIZE, generator=random)
    labels = torch.randint(CLASSES, (count,), generator=random)
    return [(patterns[label] + torch.randn(3, SIZE, SIZE, generator=random), int(label)) for label in labels]


def folder(path):
    from torchvision import datasets, transforms

    return datasets.ImageFolder(path, transforms.Compose([transforms.Resize(SIZE), transforms.CenterCrop(SIZE), transforms.ToTensor()]))


def block(before, after):
    return nn.Sequential(nn.Conv2d(before, after, 3, stride=2, padding=1), nn.GroupNorm(4, after), nn.ReLU())


def main():
    device, settings = loop.start()
    data = folder(settings["DATA"]) if "DATA" in settings else generated(2000)
    classes = len(data.classes) if hasattr(data, "classes") else CLASSES
    model = nn.Sequential(block(3, 16), block(16, 32), block(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))
    model = loop.spread(model, device)
    optimizer = torch.optim.SGD(model.parameters(), lr=float(settings.get("LEARNING_RATE", "0.05")), momentum=0.9)
    sampler = elastic.Sampler(len(data), batch=int(settings.get("GLOBAL_BATCH", "64")), epochs=int(settings.get("EPOCHS", "1")), micro_batch=int(settings.get("MICRO_BATCH", "32")))

    def loss_of(indices):
        samples = [data[i] for i in indices]
        inputs = torch.stack([x for x, _ in samples]) if samples else torch.zeros(0, 3, SIZE, SIZE)
        labels = torch.tensor([y for _, y in samples], dtype=torch.long)
        return cross_entropy(model(inputs.to(device)), labels.to(device), reduction="sum")

    loop.train(model, optimizer, sampler, loss_of, settings)


if __name__ == "__main__":
    main()
