// Pooling, in float: the CPU has no half-precision kernel for all of them.
#include "operator.h"

namespace {

Tensor wide(const Tensor& tensor) { return tensor.to(at::kFloat); }

std::optional<int64_t> divisor(int64_t value) {
  return value == 0 ? std::nullopt : std::optional<int64_t>(value);
}

}  // namespace

OPERATOR(AvgPool2d, Tensor self, Ints kernel, Ints stride, Ints padding, bool ceil, bool count_pad,
         int64_t divide, int8_t, Out out) {
  out = at::avg_pool2d(wide(self), kernel, stride, padding, ceil, count_pad, divisor(divide));
}
OPERATOR(AvgPool2dBackward, Tensor grad, Tensor self, Ints kernel, Ints stride, Ints padding,
         bool ceil, bool count_pad, int64_t divide, int8_t, Out out) {
  out = at::avg_pool2d_backward(wide(grad), wide(self), kernel, stride, padding, ceil, count_pad,
                                divisor(divide));
}
OPERATOR(AvgPool3d, Tensor self, Ints kernel, Ints stride, Ints padding, bool ceil, bool count_pad,
         int64_t divide, Out out) {
  out = at::avg_pool3d(wide(self), kernel, stride, padding, ceil, count_pad, divisor(divide));
}
OPERATOR(AvgPool3dBackward, Tensor grad, Tensor self, Ints kernel, Ints stride, Ints padding,
         bool ceil, bool count_pad, int64_t divide, Out out) {
  out = at::avg_pool3d_backward(wide(grad), wide(self), kernel, stride, padding, ceil, count_pad,
                                divisor(divide));
}
OPERATOR(AdaptiveAvgPool2d, Tensor self, Ints size, Out out) {
  out = at::_adaptive_avg_pool2d(wide(self), size);
}
OPERATOR(AdaptiveAvgPool2dBackward, Tensor grad, Tensor self, Out out) {
  out = at::_adaptive_avg_pool2d_backward(wide(grad), wide(self));
}
OPERATOR(AdaptiveAvgPool3d, Tensor self, Ints size, Out out) {
  out = at::_adaptive_avg_pool3d(wide(self), size);
}
OPERATOR(AdaptiveAvgPool3dBackward, Tensor grad, Tensor self, Out out) {
  out = at::_adaptive_avg_pool3d_backward(wide(grad), wide(self));
}
OPERATOR(AdaptiveMaxPool2d, Tensor self, Ints size, Out out, Out indices) {
  auto [values, index] = at::adaptive_max_pool2d(wide(self), size);
  out = values;
  indices = index;
}
OPERATOR(AdaptiveMaxPool3d, Tensor self, Ints size, Out out, Out indices) {
  auto [values, index] = at::adaptive_max_pool3d(wide(self), size);
  out = values;
  indices = index;
}
OPERATOR(AdaptiveMaxPool2dBackward, Tensor grad, Tensor self, Tensor indices, Out out) {
  out = at::adaptive_max_pool2d_backward(wide(grad), wide(self), indices.to(at::kLong));
}
OPERATOR(AdaptiveMaxPool3dBackward, Tensor grad, Tensor self, Tensor indices, Out out) {
  out = at::adaptive_max_pool3d_backward(wide(grad), wide(self), indices.to(at::kLong));
}

// A device packs the chosen positions into a mask of its own layout. Nobody but the gradient
// reads it, and the gradient finds the positions again from its input.
OPERATOR(MaxPool2dWithMask, Tensor self, Ints kernel, Ints stride, Ints padding, Ints dilation,
         bool ceil, Out out, Out mask) {
  out = at::max_pool2d(wide(self), kernel, stride, padding, dilation, ceil);
  mask.zero_();
}
OPERATOR(MaxPool2dWithMaskBackward, Tensor grad, Tensor self, Tensor, Ints kernel, Ints stride,
         Ints padding, Ints dilation, bool ceil, Out out) {
  const auto found =
      at::max_pool2d_with_indices(wide(self), kernel, stride, padding, dilation, ceil);
  out = at::max_pool2d_with_indices_backward(wide(grad), wide(self), kernel, stride, padding,
                                             dilation, ceil, std::get<1>(found));
}
OPERATOR(MaxPool2dWithIndices, Tensor self, Ints kernel, Ints stride, Ints padding, Ints dilation,
         bool ceil, Out out, Out indices) {
  auto [values, index] =
      at::max_pool2d_with_indices(wide(self), kernel, stride, padding, dilation, ceil);
  out = values;
  indices = index;
}
OPERATOR(MaxPool3dWithArgmax, Tensor self, Ints kernel, Ints stride, Ints padding, Ints dilation,
         bool ceil, Out out, Out indices) {
  auto [values, index] =
      at::max_pool3d_with_indices(wide(self), kernel, stride, padding, dilation, ceil);
  out = values;
  indices = index;
}
OPERATOR(MaxPool3dWithArgmaxBackward, Tensor grad, Tensor self, Tensor indices, Ints kernel,
         Ints stride, Ints padding, Ints dilation, bool ceil, Out out) {
  out = at::max_pool3d_with_indices_backward(wide(grad), wide(self), kernel, stride, padding,
                                             dilation, ceil, indices.to(at::kLong));
}
OPERATOR(MaxUnpool2d, Tensor self, Tensor indices, Ints size, Out out) {
  out = at::max_unpool2d(self, indices, size);
}
OPERATOR(MaxUnpool3d, Tensor self, Tensor indices, Ints size, Ints stride, Ints padding, Out out) {
  out = at::max_unpool3d(self, indices, size, stride, padding);
}
