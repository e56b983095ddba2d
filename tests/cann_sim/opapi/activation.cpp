// Activations and their gradients.
#include "operator.h"

OPERATOR(Gelu, Tensor self, Out out) { out = at::gelu(self); }
OPERATOR(GeluBackward, Tensor grad, Tensor self, Out out) { out = at::gelu_backward(grad, self); }
OPERATOR(GeluV2, Tensor self, int64_t tanh, Out out) {
  out = at::gelu(self, tanh != 0 ? "tanh" : "none");
}
OPERATOR(FastGelu, Tensor self, Out out) { out = self * at::sigmoid(self * 1.702); }

OPERATOR(Elu, Tensor self, Scalar alpha, Scalar scale, Scalar input_scale, Out out) {
  out = at::elu(self, alpha, scale, input_scale);
}
OPERATOR(InplaceElu, Out self, Scalar alpha, Scalar scale, Scalar input_scale) {
  self = at::elu(self, alpha, scale, input_scale);
}
OPERATOR(EluBackward, Tensor grad, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result,
         Tensor self, Out out) {
  out = at::elu_backward(grad, alpha, scale, input_scale, is_result, self);
}
OPERATOR(Celu, Tensor self, Scalar alpha, Out out) { out = at::celu(self, alpha); }
OPERATOR(InplaceCelu, Out self, Scalar alpha) { self = at::celu(self, alpha); }

OPERATOR(LeakyRelu, Tensor self, Scalar slope, Out out) { out = at::leaky_relu(self, slope); }
OPERATOR(InplaceLeakyRelu, Out self, Scalar slope) { self = at::leaky_relu(self, slope); }
OPERATOR(LeakyReluBackward, Tensor grad, Tensor self, Scalar slope, bool is_result, Out out) {
  out = at::leaky_relu_backward(grad, self, slope, is_result);
}
OPERATOR(Prelu, Tensor self, Tensor weight, Out out) { out = at::_prelu_kernel(self, weight); }

OPERATOR(PreluBackward, Tensor grad, Tensor self, Tensor weight, Out grad_self, Out grad_weight) {
  Ints shape(self.dim(), 1);
  if (weight.numel() > 1) shape.at(1) = weight.numel();
  auto [to_self, to_weight] = at::_prelu_kernel_backward(grad, self, weight.reshape(shape));
  grad_self = to_self;
  grad_weight = at::sum_to(to_weight, shape).reshape(grad_weight.sizes());
}

OPERATOR(Hardtanh, Tensor self, Scalar low, Scalar high, Out out) {
  out = at::hardtanh(self, low, high);
}
OPERATOR(InplaceHardtanh, Out self, Scalar low, Scalar high) {
  self = at::hardtanh(self, low, high);
}
OPERATOR(HardtanhBackward, Tensor grad, Tensor self, Scalar low, Scalar high, Out out) {
  out = at::hardtanh_backward(grad, self, low, high);
}
OPERATOR(Threshold, Tensor self, Scalar threshold, Scalar value, Out out) {
  out = at::threshold(self, threshold, value);
}
OPERATOR(InplaceThreshold, Out self, Scalar threshold, Scalar value) {
  self = at::threshold(self, threshold, value);
}
OPERATOR(ThresholdBackward, Tensor grad, Tensor self, Scalar threshold, Out out) {
  out = at::threshold_backward(grad, self, threshold);
}

OPERATOR(Softplus, Tensor self, Scalar beta, Scalar threshold, Out out) {
  out = at::softplus(self, beta, threshold);
}
OPERATOR(SoftplusBackward, Tensor grad, Tensor self, Scalar beta, Scalar threshold, Out out) {
  out = at::softplus_backward(grad, self, beta, threshold);
}
OPERATOR(Softshrink, Tensor self, Scalar lambda, Out out) { out = at::softshrink(self, lambda); }
OPERATOR(SoftshrinkBackward, Tensor grad, Tensor self, Scalar lambda, Out out) {
  out = at::softshrink_backward(grad, self, lambda);
}
OPERATOR(Hardshrink, Tensor self, Scalar lambda, Out out) { out = at::hardshrink(self, lambda); }
OPERATOR(HardshrinkBackward, Tensor grad, Tensor self, Scalar lambda, Out out) {
  out = at::hardshrink_backward(grad, self, lambda);
}

OPERATOR(Glu, Tensor self, int64_t dim, Out out) { out = at::glu(self, dim); }
OPERATOR(GluBackward, Tensor grad, Tensor self, int64_t dim, Out out) {
  out = at::glu_backward(grad, self, dim);
}
OPERATOR(SwiGlu, Tensor self, int64_t dim, Out out) {
  const auto halves = self.to(at::kFloat).chunk(2, dim);
  out = at::silu(halves[0]) * halves[1];
}

// The buffer is the CPU's own intermediate result; the gradient below does without.
OPERATOR(LogSigmoidForward, Tensor self, Out out, Tensor) { out = at::log_sigmoid(self); }
OPERATOR(LogSigmoidBackward, Tensor grad, Tensor self, Tensor, Out out) {
  out = grad * at::sigmoid(-self);
}

OPERATOR(SiluBackward, Tensor grad, Tensor self, Out out) { out = at::silu_backward(grad, self); }
OPERATOR(MishBackward, Tensor grad, Tensor self, Out out) { out = at::mish_backward(grad, self); }
OPERATOR(SigmoidBackward, Tensor grad, Tensor result, Out out) {
  out = at::sigmoid_backward(grad, result);
}
OPERATOR(TanhBackward, Tensor grad, Tensor result, Out out) {
  out = at::tanh_backward(grad, result);
}
OPERATOR(HardsigmoidBackward, Tensor grad, Tensor self, Out out) {
  out = at::hardsigmoid_backward(grad, self);
}
OPERATOR(HardswishBackward, Tensor grad, Tensor self, Out out) {
  out = at::hardswish_backward(grad, self);
}
OPERATOR(LogitGrad, Tensor self, Tensor grad, double eps, Out out) {
  out = at::logit_backward(grad, self, eps < 0 ? std::nullopt : std::optional<double>(eps));
}
