# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a language model on text.

MODEL is a folder with a model of Hugging Face (the image then needs transformers); without it, a small one with random weights is
trained on bytes. DATA is a file of text; without it, text is generated. SHARD=1 shards the model over the workers.
"""

import random

import loop
import torch
from kuota import elastic
from torch import nn
from torch.nn.functional import cross_entropy


class Small(nn.Module):
    """A decoder of bytes."""

    def __init__(self, length, width=64, layers=2, heads=4):
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True) for _ in range(layers))
        self.head = nn.Linear(width, 256)

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.tokens(tokens) + self.places(torch.arange(length, device=tokens.device))
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.head(x)


def text(settings):
    if "DATA" in settings:
        with open(settings["DATA"], encoding="utf-8") as file:
            return file.read()
    words = random.Random(0)
    return " ".join(words.choice(["the", "cluster", "queue", "waits", "starts", "borrows", "returns", "a", "task", "team"]) for _ in range(4_000))


def main():
    device, settings = loop.start()
    length, shard = int(settings.get("SEQUENCE", "32")), settings.get("SHARD") == "1"
    if "MODEL" in settings:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        model = AutoModelForCausalLM.from_pretrained(settings["MODEL"], torch_dtype=torch.bfloat16)
        model.gradient_checkpointing_enable()
        tokens, blocks = AutoTokenizer.from_pretrained(settings["MODEL"])(text(settings))["input_ids"], model.model.layers
    else:
        model = Small(length)
        tokens, blocks = list(text(settings).encode()), model.layers
    count = (len(tokens) - 1) // length
    tokens = torch.tensor(tokens[: count * length + 1])
    model = loop.spread(model, device, blocks if shard else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=float(settings.get("LEARNING_RATE", "0.001")))
    sampler = elastic.Sampler(count, batch=int(settings.get("GLOBAL_BATCH", "32")), epochs=int(settings.get("EPOCHS", "1")), micro_batch=int(settings.get("MICRO_BATCH", "8")))

    def loss_of(indices):
        begin = torch.tensor(indices, dtype=torch.long).unsqueeze(1) * length + torch.arange(length + 1)
        samples = tokens[begin].to(device)
        out = model(samples[:, :-1])
        return cross_entropy(getattr(out, "logits", out).transpose(1, 2).float(), samples[:, 1:], reduction="sum") / length

    loop.train(model, optimizer, sampler, loss_of, settings)


if __name__ == "__main__":
    main()
