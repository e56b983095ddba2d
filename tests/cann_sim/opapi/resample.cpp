// Up- and resampling.
#include "operator.h"

namespace {

Tensor wide(const Tensor& tensor) { return tensor.to(at::kFloat); }

// op-plugin passes 0 or -1 for "no scale".
std::optional<double> scale(double value) {
  return value > 0 ? std::optional<double>(value) : std::nullopt;
}

}  // namespace

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
OPERATOR(UpsampleNearest1dBackward, Tensor grad, Ints size, Ints input, double s, Out out) {
  out = at::upsample_nearest1d_backward(grad, size, input, scale(s));
}
OPERATOR(UpsampleNearest3dBackward, Tensor grad, Ints size, Ints input, double d, double h,
         double w, Out out) {
  out = at::upsample_nearest3d_backward(grad, size, input, scale(d), scale(h), scale(w));
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
OPERATOR(UpsampleNearestExact3d, Tensor self, Ints size, double d, double h, double w, Out out) {
  out = at::_upsample_nearest_exact3d(self, size, scale(d), scale(h), scale(w));
}
OPERATOR(UpsampleNearestExact1dBackward, Tensor grad, Ints size, Ints input, double s, Out out) {
  out = at::_upsample_nearest_exact1d_backward(grad, size, input, scale(s));
}
OPERATOR(UpsampleNearestExact2dBackward, Tensor grad, Ints size, Ints input, double h, double w,
         Out out) {
  out = at::_upsample_nearest_exact2d_backward(grad, size, input, scale(h), scale(w));
}
OPERATOR(UpsampleNearestExact3dBackward, Tensor grad, Ints size, Ints input, double d, double h,
         double w, Out out) {
  out = at::_upsample_nearest_exact3d_backward(grad, size, input, scale(d), scale(h), scale(w));
}
OPERATOR(UpsampleLinear1dBackward, Tensor grad, Ints size, Ints input, bool align, double s,
         Out out) {
  out = at::upsample_linear1d_backward(wide(grad), size, input, align, scale(s));
}
OPERATOR(UpsampleTrilinear3dBackward, Tensor grad, Ints size, Ints input, bool align, double d,
         double h, double w, Out out) {
  out = at::upsample_trilinear3d_backward(wide(grad), size, input, align, scale(d), scale(h),
                                          scale(w));
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

#define GRID_SAMPLER(Name, forward, backward)                                                    \
  OPERATOR(Name, Tensor self, Tensor grid, int64_t mode, int64_t padding, bool align, Out out) { \
    out = forward(wide(self), wide(grid), mode, padding, align);                                 \
  }                                                                                              \
  OPERATOR(Name##Backward, Tensor grad, Tensor self, Tensor grid, int64_t mode, int64_t padding, \
           bool align, std::vector<uint8_t> wanted, Out grad_self, Out grad_grid) {              \
    auto [to_self, to_grid] = backward(wide(grad), wide(self), wide(grid), mode, padding, align, \
                                       {wanted.at(0) != 0, wanted.at(1) != 0});                  \
    if (to_self.defined()) grad_self = to_self;                                                  \
    if (to_grid.defined()) grad_grid = to_grid;                                                  \
  }

GRID_SAMPLER(GridSampler2D, at::grid_sampler_2d, at::grid_sampler_2d_backward)
GRID_SAMPLER(GridSampler3D, at::grid_sampler_3d, at::grid_sampler_3d_backward)
