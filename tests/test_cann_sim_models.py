"""Whole models on the simulated device against the CPU."""

from __future__ import annotations

import copy

import pytest
import torch
import torch_npu  # noqa: F401 - registers the device
from torch import nn

from npu_fallback_exporter.demo.model import Decoder, DecoderConfig
from tests.cann_sim import Ledger
from tests.support.child import run_python

PROMPT = torch.tensor([[5, 9, 3, 7], [1, 2, 3, 4]])
NEW_TOKENS = 12


@pytest.fixture
def host_tokens() -> torch.Tensor:
    return Decoder(fallback_op=False).load("cpu").generate(PROMPT, NEW_TOKENS)


@pytest.mark.parametrize("fallback_op", [False, True])
def test_the_decoder_writes_the_same_tokens_as_on_the_cpu(
    ledger: Ledger, host_tokens: torch.Tensor, fallback_op: bool
) -> None:
    model = Decoder(fallback_op=fallback_op).load("npu")
    assert torch.equal(model.generate(PROMPT.npu(), NEW_TOKENS).cpu(), host_tokens)


@pytest.mark.usefixtures("ledger")
def test_the_decoder_in_bfloat16_is_within_two_percent_of_the_cpu() -> None:
    device, _ = Decoder(fallback_op=True).load("npu", torch.bfloat16)(PROMPT.npu())
    host, _ = Decoder(fallback_op=True).load("cpu", torch.bfloat16)(PROMPT)
    scale = host.float().abs().max()
    assert (device.cpu().float() - host.float()).abs().max() <= 0.02 * scale


def test_generating_moves_exactly_the_bytes_that_the_model_documents(ledger: Ledger) -> None:
    config = DecoderConfig()
    model = Decoder(fallback_op=True, config=config).load("npu")
    prompt = PROMPT.npu()
    torch.npu.synchronize()
    before = ledger.snapshot()
    model.generate(prompt, NEW_TOKENS)
    torch.npu.synchronize()
    moved = ledger.snapshot() - before
    logits = PROMPT.size(0) * config.vocabulary * 4
    assert moved.d2h_bytes == NEW_TOKENS * (2 * logits + 4)
    assert moved.h2d_bytes == NEW_TOKENS * logits


def test_generating_without_the_fallback_operator_moves_nothing(ledger: Ledger) -> None:
    model = Decoder(fallback_op=False).load("npu")
    prompt = PROMPT.npu()
    torch.npu.synchronize()
    before = ledger.snapshot()
    model.generate(prompt, NEW_TOKENS)
    torch.npu.synchronize()
    moved = ledger.snapshot() - before
    assert (moved.d2h_calls, moved.h2d_calls) == (0, 0)


def small_cnn() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=2),
        nn.AvgPool2d(2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 10),
        nn.LogSoftmax(-1),
    )


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float32, 1e-5), (torch.float16, 1e-2), (torch.bfloat16, 5e-2)],
)
def test_a_convolutional_network_classifies_as_on_the_cpu(
    dtype: torch.dtype, tolerance: float
) -> None:
    host = small_cnn().eval()
    image = torch.randn(2, 3, 16, 16)
    expected = host(image)
    device = copy.deepcopy(host).to("npu", dtype)
    actual = device(image.to("npu", dtype)).float().cpu()
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_a_training_step_changes_the_weights_as_on_the_cpu(
    optimizer: type[torch.optim.Optimizer],
) -> None:
    torch.manual_seed(0)
    host = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 5))
    device = copy.deepcopy(host).npu()
    features, label = torch.randn(4, 8), torch.tensor([1, 2, 3, 4])
    for model, x, y in ((host, features, label), (device, features.npu(), label.npu())):
        update = optimizer(model.parameters(), lr=0.01)
        nn.functional.cross_entropy(model(x), y).backward()
        update.step()
    for expected, actual in zip(host.parameters(), device.parameters(), strict=True):
        torch.testing.assert_close(actual.cpu(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("ledger")
def test_gradients_of_a_convolutional_network_are_those_of_the_cpu() -> None:
    host = small_cnn()
    device = copy.deepcopy(host).npu()
    image, label = torch.randn(4, 3, 16, 16), torch.tensor([1, 2, 3, 4])
    for model, x, y in ((host, image, label), (device, image.npu(), label.npu())):
        nn.functional.nll_loss(model(x), y).backward()
    for expected, actual in zip(host.parameters(), device.parameters(), strict=True):
        assert expected.grad is not None
        torch.testing.assert_close(actual.grad.cpu(), expected.grad, atol=1e-5, rtol=1e-4)


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("fast_path", [True, False])
def test_a_transformer_layer_gives_the_same_on_its_fast_and_its_plain_path(
    fast_path: bool,
) -> None:
    torch.manual_seed(0)
    host = nn.TransformerEncoderLayer(64, 4, batch_first=True).eval()
    x = torch.randn(2, 16, 64)
    device = copy.deepcopy(host).npu()
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(fast_path)
    try:
        with torch.no_grad():
            torch.testing.assert_close(device(x.npu()).cpu(), host(x), atol=1e-5, rtol=1e-5)
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("queue", ["0", "1", "2"])
def test_every_mode_of_the_task_queue_writes_the_same_tokens(
    host_tokens: torch.Tensor, queue: str
) -> None:
    done = run_python(
        f"""
import torch, torch_npu
from npu_fallback_exporter.demo.model import Decoder
model = Decoder(fallback_op=True).load("npu")
print(model.generate(torch.tensor({PROMPT.tolist()}, device="npu"), {NEW_TOKENS}).tolist())
""",
        env={"TASK_QUEUE_ENABLE": queue},
    )
    assert done.stdout.strip() == str(host_tokens.tolist()), done.stderr
