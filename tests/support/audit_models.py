"""Ten small models that fall back on torch_npu 2.13, with the inputs that they are run on.

Each factory is what ``audit`` gets, as ``tests.support.audit_models:NAME``; ``audit_inputs.py`` has
the inputs. The same code runs under the audit and on the simulated device.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

_library: list[torch.library.Library] = []


def _define_operators() -> None:
    """Define operators with a kernel for the CPU alone: torchvision's nms, and two of our own."""
    vision = torch.library.Library("torchvision", "DEF")
    vision.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    vision.impl("nms", _nms, "CPU")
    own = torch.library.Library("audit_models", "DEF")
    own.define("clip_norm(Tensor x, float most) -> (Tensor, Tensor)")
    own.impl("clip_norm", _clip_norm, "CPU")
    own.define("shift_(Tensor(a!) x, float by) -> Tensor(a!)")
    own.impl("shift_", lambda x, by: x.add_(by), "CPU")
    _library.extend((vision, own))


def _nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    keep: list[int] = []
    areas = (dets[:, 2] - dets[:, 0]) * (dets[:, 3] - dets[:, 1])
    for index in scores.argsort(descending=True).tolist():
        low = torch.maximum(dets[keep, :2], dets[index, :2])
        high = torch.minimum(dets[keep, 2:], dets[index, 2:])
        inner = (high - low).clamp(min=0).prod(dim=1)
        if bool((inner <= iou_threshold * (areas[keep] + areas[index] - inner)).all()):
            keep.append(index)
    return torch.tensor(keep, dtype=torch.int64)


def _clip_norm(x: Tensor, most: float) -> tuple[Tensor, Tensor]:
    norm = x.norm(dim=-1, keepdim=True)
    return x * (most / norm).clamp(max=1), norm


_define_operators()


class _Fast(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.encoder(x)
        return out


class _Detector(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Conv2d(3, 8, 3, stride=4, padding=1)
        self.boxes = nn.Conv2d(8, 4, 1)
        self.scores = nn.Conv2d(8, 1, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        features = torch.relu(self.features(image))
        sizes = self.boxes(features).flatten(2).squeeze(0).t().abs() * 8 + 4
        scores = self.scores(features).flatten().sigmoid()
        side = int(math.sqrt(scores.numel()))
        grid = torch.arange(side, device=image.device) * 4
        centres = torch.stack(torch.meshgrid(grid, grid, indexing="ij"), -1).reshape(-1, 2)
        dets = torch.cat([centres - sizes[:, :2], centres + sizes[:, 2:]], dim=1)
        keep = torch.ops.torchvision.nms(dets, scores, 0.3)
        return dets[keep], scores[keep]


class _Samplers(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.rates = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        rates = nn.functional.softplus(self.rates(x)) + 0.1
        gamma = torch.distributions.Gamma(rates, torch.ones_like(rates), validate_args=False)
        dirichlet = torch.distributions.Dirichlet(rates, validate_args=False)
        return (
            gamma.sample(),
            dirichlet.sample((2,)),
            torch.poisson(rates),
            torch.binomial(torch.full_like(rates, 10.0), rates / (1 + rates)),
        )


class _GaussianProcess(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.linspace(-2, 2, 20).unsqueeze(1))
        self.register_buffer("targets", torch.sin(torch.linspace(-2, 2, 20)).unsqueeze(1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        seen = self.get_buffer("seen")
        inner = _kernel(seen, seen) + 1e-2 * torch.eye(20, device=x.device)
        factor = torch.linalg.cholesky(inner)
        weights = torch.cholesky_solve(self.get_buffer("targets"), factor)
        across = _kernel(x, seen)
        spread = torch.linalg.solve_triangular(factor, across.t(), upper=False)
        return across @ weights, 1 - (spread**2).sum(0), torch.logdet(inner)


def _kernel(a: Tensor, b: Tensor) -> Tensor:
    return torch.exp(-0.5 * (a - b.t()) ** 2)


class _Kalman(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.transition = nn.Parameter(torch.eye(4) + 0.1 * torch.diag(torch.ones(2), 2))
        self.observed = nn.Parameter(torch.eye(2, 4))

    def forward(self, measured: Tensor) -> tuple[Tensor, Tensor]:
        state = measured.new_zeros(4, 1)
        spread = torch.eye(4, device=measured.device)
        noise = 0.1 * torch.eye(2, device=measured.device)
        for step in measured:
            state = self.transition @ state
            spread = self.transition @ spread @ self.transition.t() + 0.01
            inner = self.observed @ spread @ self.observed.t() + noise
            gain = spread @ self.observed.t() @ torch.inverse(inner)
            state = state + gain @ (step.unsqueeze(1) - self.observed @ state)
            spread = (
                spread - torch.linalg.solve(inner, self.observed @ spread).t() @ inner @ gain.t()
            )
        return state, spread


class _SpecialFunctions(nn.Module):  # type: ignore[misc]
    def forward(self, x: Tensor) -> Tensor:
        y = x.abs() + 0.5
        out = torch.lgamma(y) + torch.special.i0e(y) + torch.special.erfcx(x)
        out = out + torch.digamma(y) + torch.special.ndtri(torch.sigmoid(x))
        out = out + torch.special.i1(y).lgamma_() + torch.igamma(y, y + 1)
        return torch.fmax(out, torch.copysign(out, x))


class _Statistics(nn.Module):  # type: ignore[misc]
    def forward(self, x: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        mode, index = torch.mode(labels, dim=1)
        counts = torch.histc(x, bins=8, min=-2.0, max=2.0)
        hist, edges = torch.histogram(x, 6)
        return mode, index, counts, hist, edges, torch.nanmedian(x), torch.kthvalue(x, 2).values


class _LogCumSumExp(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(32))

    def forward(self, x: Tensor) -> Tensor:
        return torch.logcumsumexp(x * self.scale, dim=1) + torch.logcumsumexp(x.half(), dim=0)


class _FractionalPooling(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)
        self.pool = nn.FractionalMaxPool2d(2, output_ratio=0.6)

    def forward(self, image: Tensor) -> Tensor:
        out: Tensor = self.pool(torch.relu(self.convolution(image)))
        return out


class _CustomOperator(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x, norm = torch.ops.audit_models.clip_norm(layer(x), 1.0)
            torch.ops.audit_models.shift_(x, 0.5)
            x = x + norm
        return x


transformer_encoder: Callable[[], nn.Module] = _Fast
detector: Callable[[], nn.Module] = _Detector
samplers: Callable[[], nn.Module] = _Samplers
gaussian_process: Callable[[], nn.Module] = _GaussianProcess
kalman: Callable[[], nn.Module] = _Kalman
special_functions: Callable[[], nn.Module] = _SpecialFunctions
statistics: Callable[[], nn.Module] = _Statistics
log_cum_sum_exp: Callable[[], nn.Module] = _LogCumSumExp
fractional_pooling: Callable[[], nn.Module] = _FractionalPooling
custom_operator: Callable[[], nn.Module] = _CustomOperator
