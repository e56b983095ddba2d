"""The model that ``demo`` serves: a small decoder with a key-value cache and seeded weights.

It is a real one in all but size: rotary positions, grouped attention, a gated MLP, greedy
decoding. With ``fallback_op=True`` it contains two operators that torch_npu has no NPU kernel
for, at the two places where such operators hurt or do not hurt:

* :meth:`Decoder.load` inverts a matrix once: one event of ``aten::linalg_inv_ex.inverse``;
* every forward pass guards its logits with :func:`torch.fmax`, which, unlike ``maximum``, turns
  NaN into the floor: one event of ``aten::fmax.out``.

``generate(prompt, n)`` does exactly ``n`` forward passes, so it causes exactly ``n`` events, each
of which moves ``2 * batch * vocabulary * itemsize + itemsize`` bytes to the host (logits, the
result's memory, the floor) and ``batch * vocabulary * itemsize`` bytes back. With
``fallback_op=False`` the same tokens come out and there is no event at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

LOGIT_FLOOR = -1e4

KeyValue = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes; the default is small enough to answer in milliseconds on one CPU core."""

    vocabulary: int = 256
    width: int = 64
    layers: int = 2
    heads: int = 4
    key_value_heads: int = 2
    hidden: int = 128
    longest: int = 256
    seed: int = 20

    @property
    def head_width(self) -> int:
        """Width of one attention head."""
        return self.width // self.heads


class RmsNorm(nn.Module):  # type: ignore[misc]
    """Root mean square norm, computed in float32 whatever the weights are."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x`` at unit root mean square, scaled."""
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (wide * scale).to(x.dtype) * self.weight


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn pairs of dimensions by the angles of their position."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):  # type: ignore[misc]
    """Causal attention in which several query heads share one key-value head."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        key_value_width = config.key_value_heads * config.head_width
        self.query = nn.Linear(config.width, config.width, bias=False)
        self.key = nn.Linear(config.width, key_value_width, bias=False)
        self.value = nn.Linear(config.width, key_value_width, bias=False)
        self.output = nn.Linear(config.width, config.width, bias=False)

    def _heads(self, x: Tensor, count: int) -> Tensor:
        return x.unflatten(-1, (count, self.config.head_width)).transpose(1, 2)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, hidden: Tensor, past: KeyValue | None
    ) -> tuple[Tensor, KeyValue]:
        """Attend to all positions up to each one; return also the keys and values so far."""
        config = self.config
        query = rotate(self._heads(self.query(x), config.heads), cos, sin)
        key = rotate(self._heads(self.key(x), config.key_value_heads), cos, sin)
        value = self._heads(self.value(x), config.key_value_heads)
        if past is not None:
            key = torch.cat((past[0], key), dim=2)
            value = torch.cat((past[1], value), dim=2)
        group = config.heads // config.key_value_heads
        keys = key.repeat_interleave(group, dim=1)
        values = value.repeat_interleave(group, dim=1)
        scores = query @ keys.transpose(-2, -1) * config.head_width**-0.5
        weights = scores.float().masked_fill(hidden, float("-inf")).softmax(-1).to(x.dtype)
        mixed = (weights @ values).transpose(1, 2).flatten(2)
        return self.output(mixed), (key, value)


class GatedMlp(nn.Module):  # type: ignore[misc]
    """Two projections, one gating the other."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.width, config.hidden, bias=False)
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the gated projection of ``x``."""
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):  # type: ignore[misc]
    """Attention and MLP, each behind a norm and around a residual."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.attention_norm = RmsNorm(config.width)
        self.attention = Attention(config)
        self.mlp_norm = RmsNorm(config.width)
        self.mlp = GatedMlp(config)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, hidden: Tensor, past: KeyValue | None
    ) -> tuple[Tensor, KeyValue]:
        """Apply the block; return also its keys and values so far."""
        mixed, cache = self.attention(self.attention_norm(x), cos, sin, hidden, past)
        x = x + mixed
        return x + self.mlp(self.mlp_norm(x)), cache


class Decoder(nn.Module):  # type: ignore[misc]
    """The language model.

    Args:
        fallback_op: whether it contains the two operators that fall back to the CPU.
        config: its sizes and the seed of its weights.
    """

    floor: Tensor
    mixing: Tensor
    unmixing: Tensor
    cos: Tensor
    sin: Tensor

    def __init__(self, fallback_op: bool, config: DecoderConfig | None = None) -> None:
        super().__init__()
        self.fallback_op = fallback_op
        self.config = config = config or DecoderConfig()
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = RmsNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        # A generator of its own: torch.manual_seed would also seed, and touch, the device.
        generator = torch.Generator().manual_seed(config.seed)
        self.requires_grad_(False)
        for weight in self.parameters():
            if weight.dim() > 1:
                weight.normal_(std=weight.size(1) ** -0.5, generator=generator)
        mixing = torch.randn(config.width, config.width, generator=generator)
        mixing = torch.eye(config.width) + 0.01 * mixing
        inverse_frequency = 1e4 ** -(torch.arange(0, config.head_width, 2) / config.head_width)
        angles = torch.outer(torch.arange(config.longest), inverse_frequency).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self.register_buffer("floor", torch.tensor(LOGIT_FLOOR))
        self.register_buffer("mixing", mixing)
        self.register_buffer("unmixing", torch.linalg.inv(mixing))

    def load(self, device: torch.device | str, dtype: torch.dtype = torch.float32) -> Decoder:
        """Move the model to ``device`` and prepare it there, as a server does at start."""
        self.to(device)
        if self.fallback_op:
            self.unmixing = torch.linalg.inv(self.mixing)
        self.to(dtype).eval()
        return self

    def forward(
        self, tokens: Tensor, past: list[KeyValue] | None = None
    ) -> tuple[Tensor, list[KeyValue]]:
        """Return the logits after the last token of each row, and the cache for the next call."""
        start = 0 if past is None else past[0][0].size(2)
        end = start + tokens.size(1)
        cos, sin = self.cos[start:end], self.sin[start:end]
        positions = torch.arange(end, device=tokens.device)
        hidden = positions[None, :] > positions[start:, None]
        x = self.embedding(tokens)
        cache = []
        for index, block in enumerate(self.blocks):
            x, key_value = block(x, cos, sin, hidden, None if past is None else past[index])
            cache.append(key_value)
        logits = self.head(self.norm(x[:, -1]) @ self.unmixing)
        if self.fallback_op:
            logits = torch.fmax(logits, self.floor)
        return logits, cache

    def generate(self, prompt: Tensor, count: int) -> Tensor:
        """Return ``count`` tokens for each row of ``prompt``, always the likeliest one."""
        produced = []
        tokens, cache = prompt, None
        with torch.inference_mode():
            for _ in range(count):
                logits, cache = self(tokens, cache)
                tokens = logits.argmax(-1, keepdim=True)
                produced.append(tokens)
            return torch.cat(produced, dim=1)
