# SPDX-License-Identifier: Apache-2.0
"""Tests of kuota.elastic that need no PyTorch."""

import random
import sys
import unittest

from kuota import elastic


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


class Module(unittest.TestCase):
    def test_data_needs_no_pytorch(self) -> None:
        self.assertNotIn("torch", sys.modules)
        with self.assertRaises(AttributeError):
            elastic.unknown  # noqa: B018


if __name__ == "__main__":
    unittest.main()
