# SPDX-License-Identifier: Apache-2.0
"""Which samples each worker trains on, at every number of workers.

The order of the samples of an epoch depends on the seed and the epoch only. A position counts the
samples of all epochs in that order, and is all that a checkpoint needs: each position is trained on
once, however many workers there are.
"""

from __future__ import annotations

import dataclasses
import os
import random
from collections.abc import Iterator, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Share:
    """What one worker trains on of a global batch: the samples [start, stop), counted in the batch."""

    start: int
    stop: int
    batch: int  # samples of the global batch
    world: int  # workers
    micro_batch: int  # most samples in one part

    @property
    def local_batch(self) -> int:
        """Samples of this worker."""
        return self.stop - self.start

    @property
    def steps(self) -> int:
        """Parts that the worker accumulates gradients over; at least 1, which can be empty."""
        return max(1, -(-self.local_batch // self.micro_batch))

    @property
    def scale(self) -> float:
        """The factor of the sum of the losses of this worker's samples.

        DistributedDataParallel and FSDP divide gradients by the number of workers, which is right only
        for equal shares. With this factor the gradient is the mean over the global batch.
        """
        return self.world / self.batch

    def parts(self, samples: Sequence[Any]) -> Iterator[Any]:
        """Yields the samples of this worker, such as a tensor, in parts of at most micro_batch."""
        for i in range(self.steps):
            yield samples[i * self.micro_batch : (i + 1) * self.micro_batch]


def global_batch(batch: int, micro_batch: int | None = None, rank: int | None = None, world: int | None = None) -> Share:
    """Returns the share of a worker of a global batch of so many samples.

    The shares of all workers cover the batch once; their lengths differ by one at most. rank and world
    are those of torchrun unless they are given. micro_batch is how many samples fit into memory at
    once; without it the share is one part.
    """
    rank = int(os.environ.get("RANK", "0")) if rank is None else rank
    world = int(os.environ.get("WORLD_SIZE", "1")) if world is None else world
    if batch < 1 or not 0 <= rank < world:
        raise ValueError(f"a global batch of {batch} for rank {rank} of {world} workers: it needs at least 1 sample, and a rank below the number of workers")
    start, stop = batch * rank // world, batch * (rank + 1) // world
    if micro_batch is not None and micro_batch < 1:
        raise ValueError(f"micro_batch is {micro_batch}, and must be at least 1")
    return Share(start, stop, batch, world, micro_batch or max(1, stop - start))


class Sampler:
    """The planned order of the samples, and how far training is.

        sampler = elastic.Sampler(len(dataset), batch=256, epochs=10)
        loader = DataLoader(dataset, batch_sampler=sampler)
        for inputs, labels in loader:
            ...                              # one step
            sampler.done()
            if elastic.elastic_event_detected():
                ...

    It yields the indices of this worker for one global batch after the other, from the position on. A
    DataLoader asks for batches before they are trained on, so that the position moves only with done().
    """

    def __init__(
        self, count: int, batch: int, epochs: int = 1, seed: int = 0, shuffle: bool = True, micro_batch: int | None = None, rank: int | None = None, world: int | None = None
    ) -> None:
        if count < 1 or batch < 1 or epochs < 1:
            raise ValueError(f"{count} samples in batches of {batch} for {epochs} epochs: each must be at least 1")
        self.count, self.batch, self.epochs, self.seed, self.shuffle = count, batch, epochs, seed, shuffle
        self.micro_batch, self.rank, self.world = micro_batch, rank, world
        self.position = 0
        self._orders: dict[int, Sequence[int]] = {}

    @property
    def positions(self) -> int:
        """Positions of all epochs."""
        return self.count * self.epochs

    def __len__(self) -> int:
        """Global batches from the position to the end."""
        return -(-(self.positions - self.position) // self.batch)

    def __iter__(self) -> Iterator[list[int]]:
        for begin in range(self.position, self.positions, self.batch):
            share = self.share(begin)
            yield [self.index(p) for p in range(begin + share.start, begin + share.stop)]

    def share(self, begin: int | None = None) -> Share:
        """Returns the share of this worker of the global batch that begins at a position, by default
        the next one to be done. The last batch of all is the rest."""
        begin = self.position if begin is None else begin
        return global_batch(max(1, min(self.batch, self.positions - begin)), self.micro_batch, self.rank, self.world)

    def index(self, position: int) -> int:
        """Returns the index of the sample at a position."""
        epoch, at = divmod(position, self.count)
        if not self.shuffle:
            return at
        if epoch not in self._orders:
            self._orders = {e: order for e, order in self._orders.items() if e == epoch - 1}  # a batch can have samples of two epochs
            order = list(range(self.count))
            random.Random(f"{self.seed} {epoch}").shuffle(order)
            self._orders[epoch] = order
        return self._orders[epoch][at]

    def done(self) -> None:
        """Counts one global batch as trained on."""
        self.position = min(self.position + self.batch, self.positions)

    def state_dict(self) -> dict[str, int]:
        return {"position": self.position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.position = int(state["position"])
