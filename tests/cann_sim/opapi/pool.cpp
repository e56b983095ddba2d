// Pooling, up- and resampling.
#include "operator.h"

namespace {

Tensor wide(const Tensor& tensor) { return tensor.to(at::kFloat); }

std::optional<int64_t> divisor(int64_t value) {
  return value == 0 ? std::nullopt : std::optional<int64_t>(value);
}

// op-plugin passes 0 or -1 for "no scale".
std::optional<double> scale(double value) {
  return value > 0 ? std::optional<double>(value) : std::nullopt;
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
OPERATOR(AdaptiveAvgPool2d, Tensor self, Ints size, Out out) {
  out = at::_adaptive_avg_pool2d(wide(self), size);
}
OPERATOR(AdaptiveAvgPool2dBackward, Tensor grad, Tensor self, Out out) {
  out = at::_adaptive_avg_pool2d_backward(wide(grad), wide(self));
}
OPERATOR(AdaptiveAvgPool3d, Tensor self, Ints size, Out out) {
  out = at::_adaptive_avg_pool3d(wide(self), size);
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
OPERATOR(MaxUnpool2d, Tensor self, Tensor indices, Ints size, Out out) {
  out = at::max_unpool2d(self, indices, size);
}
OPERATOR(MaxUnpool3d, Tensor self, Tensor indices, Ints size, Ints stride, Ints padding, Out out) {
  out = at::max_unpool3d(self, indices, size, stride, padding);
}

OPERATOR(UpsampleNearest1d, Tensor self, Ints size, Out out) {
  out = at::upsample_nearest1d(self, size);
}
OPERATOR(UpsampleNearest1dV2, Tensor self, Ints size, float s, Out out) {
  out = at::upsample_nearest1d(self, size, scale(s));
}
OPERATOR(UpsampleNearest2d, Tensor self, Ints size, Out out) {
  out = at::upsample_nearest2d(self, size);
}
OPERATOR(UpsampleNearest2dV2, Tensor self, Ints size, float h, float w, Out out) {
  out = at::upsample_nearest2d(self, size, scale(h), scale(w));
}
OPERATOR(UpsampleNearest2dBackward, Tensor grad, Ints size, Ints input, double h, double w,
         Out out) {
  out = at::upsample_nearest2d_backward(grad, size, input, scale(h), scale(w));
}
OPERATOR(UpsampleNearest3d, Tensor self, Ints size, double d, double h, double w, Out out) {
  out = at::upsample_nearest3d(self, size, scale(d), scale(h), scale(w));
}
OPERATOR(UpsampleNearestExact1d, Tensor self, Ints size, double s, Out out) {
  out = at::_upsample_nearest_exact1d(self, size, scale(s));
}
OPERATOR(UpsampleNearestExact2d, Tensor self, Ints size, double h, double w, Out out) {
  out = at::_upsample_nearest_exact2d(self, size, scale(h), scale(w));
}
OPERATOR(UpsampleLinear1d, Tensor self, Ints size, bool align, double s, Out out) {
  out = at::upsample_linear1d(wide(self), size, align, scale(s));
}

#define UPSAMPLE_2D(Name, function)                                                             \
  OPERATOR(Name, Tensor self, Ints size, bool align, double h, double w, Out out) {             \
    out = function(wide(self), size, align, scale(h), scale(w));                                \
  }                                                                                             \
  OPERATOR(Name##Backward, Tensor grad, Ints size, Ints input, bool align, double h, double w,  \
           Out out) {                                                                           \
    out = function##_backward(wide(grad), size, input, align, scale(h), scale(w));              \
  }

UPSAMPLE_2D(UpsampleBilinear2d, at::upsample_bilinear2d)
UPSAMPLE_2D(UpsampleBicubic2d, at::upsample_bicubic2d)
UPSAMPLE_2D(UpsampleBilinear2dAA, at::_upsample_bilinear2d_aa)

OPERATOR(UpsampleBicubic2dAA, Tensor self, Ints size, bool align, double h, double w, Out out) {
  out = at::_upsample_bicubic2d_aa(wide(self), size, align, scale(h), scale(w));
}
OPERATOR(UpsampleTrilinear3d, Tensor self, Ints size, bool align, double d, double h, double w,
         Out out) {
  out = at::upsample_trilinear3d(wide(self), size, align, scale(d), scale(h), scale(w));
}

OPERATOR(GridSampler2D, Tensor self, Tensor grid, int64_t mode, int64_t padding, bool align,
         Out out) {
  out = at::grid_sampler_2d(wide(self), wide(grid), mode, padding, align);
}
OPERATOR(GridSampler3D, Tensor self, Tensor grid, int64_t mode, int64_t padding, bool align,
         Out out) {
  out = at::grid_sampler_3d(wide(self), wide(grid), mode, padding, align);
}
