// Reductions and scans.
#include "operator.h"

namespace {

// aclnn takes no dimensions for all of them, where torch.any and others reduce none.
Ints all_if_none(const Tensor& self, const Ints& dims) {
  if (!dims.empty()) return dims;
  Ints all(self.dim());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

OPERATOR(ReduceSum, Tensor self, Ints dims, bool keepdim, DType dtype, Out out) {
  out = at::sum(self, dims, keepdim, dtype);
}
OPERATOR(ReduceNansum, Tensor self, Ints dims, bool keepdim, DType dtype, Out out) {
  out = at::nansum(self, dims, keepdim, dtype);
}
OPERATOR(Mean, Tensor self, Ints dims, bool keepdim, DType dtype, Out out) {
  out = at::mean(self, dims, keepdim, dtype);
}
OPERATOR(MeanV2, Tensor self, Ints dims, bool keepdim, bool, Out out) {
  out = at::mean(self, dims, keepdim);
}
OPERATOR(Prod, Tensor self, DType dtype, Out out) { out = at::prod(self, dtype); }
OPERATOR(ProdDim, Tensor self, int64_t dim, bool keepdim, DType dtype, Out out) {
  out = at::prod(self, dim, keepdim, dtype);
}

OPERATOR(All, Tensor self, Ints dims, bool keepdim, Out out) {
  out = at::all(self, all_if_none(self, dims), keepdim);
}
OPERATOR(Any, Tensor self, Ints dims, bool keepdim, Out out) {
  out = at::any(self, all_if_none(self, dims), keepdim);
}

OPERATOR(Max, Tensor self, Out out) { out = at::max(self); }
OPERATOR(Min, Tensor self, Out out) { out = at::min(self); }
OPERATOR(Amax, Tensor self, Ints dims, bool keepdim, Out out) {
  out = at::amax(self, dims, keepdim);
}
OPERATOR(Amin, Tensor self, Ints dims, bool keepdim, Out out) {
  out = at::amin(self, dims, keepdim);
}
OPERATOR(MaxDim, Tensor self, int64_t dim, bool keepdim, Out values, Out indices) {
  auto [value, index] = at::max(self, dim, keepdim);
  values = value;
  indices = index;
}
OPERATOR(MinDim, Tensor self, int64_t dim, bool keepdim, Out values, Out indices) {
  auto [value, index] = at::min(self, dim, keepdim);
  values = value;
  indices = index;
}
OPERATOR(ArgMax, Tensor self, int64_t dim, bool keepdim, Out out) {
  out = at::argmax(self, dim, keepdim);
}
OPERATOR(ArgMin, Tensor self, int64_t dim, bool keepdim, Out out) {
  out = at::argmin(self, dim, keepdim);
}
OPERATOR(Aminmax, Tensor self, Ints dims, bool keepdim, Out low, Out high) {
  low = at::amin(self, dims, keepdim);
  high = at::amax(self, dims, keepdim);
}
OPERATOR(AminmaxAll, Tensor self, Out low, Out high) {
  low = at::min(self);
  high = at::max(self);
}
OPERATOR(AminmaxDim, Tensor self, int64_t dim, bool keepdim, Out low, Out high) {
  low = at::amin(self, dim, keepdim);
  high = at::amax(self, dim, keepdim);
}

OPERATOR(VarCorrection, Tensor self, Ints dims, int64_t correction, bool keepdim, Out out) {
  out = at::var(self, dims, Scalar(correction), keepdim);
}
OPERATOR(Var, Tensor self, Ints dims, bool unbiased, bool keepdim, Out out) {
  out = at::var(self, dims, Scalar(unbiased ? 1 : 0), keepdim);
}
OPERATOR(VarMean, Tensor self, Ints dims, int64_t correction, bool keepdim, Out var, Out mean) {
  auto [spread, centre] = at::var_mean(self, dims, Scalar(correction), keepdim);
  var = spread;
  mean = centre;
}
OPERATOR(Std, Tensor self, Ints dims, int64_t correction, bool keepdim, Out out) {
  out = at::std(self, dims, Scalar(correction), keepdim);
}
OPERATOR(StdMeanCorrection, Tensor self, Ints dims, int64_t correction, bool keepdim, Out std,
         Out mean) {
  auto [spread, centre] = at::std_mean(self, dims, Scalar(correction), keepdim);
  std = spread;
  mean = centre;
}

OPERATOR(Norm, Tensor self, Scalar p, Ints dims, bool keepdim, Out out) {
  out = at::linalg_vector_norm(self, p, all_if_none(self, dims), keepdim);
}
OPERATOR(LinalgVectorNorm, Tensor self, Scalar order, Ints dims, bool keepdim, DType dtype,
         Out out) {
  out = at::linalg_vector_norm(self, order, all_if_none(self, dims), keepdim, dtype);
}
OPERATOR(LogSumExp, Tensor self, Ints dims, bool keepdim, Out out) {
  out = at::logsumexp(self, dims, keepdim);
}
OPERATOR(Trace, Tensor self, Out out) { out = at::trace(self); }

OPERATOR(Cumsum, Tensor self, int64_t dim, DType dtype, Out out) {
  out = at::cumsum(self, dim, dtype);
}
OPERATOR(Cumprod, Tensor self, Scalar dim, DType dtype, Out out) {
  out = at::cumprod(self, dim.toLong(), dtype);
}
OPERATOR(InplaceCumprod, Out self, Scalar dim) { self = at::cumprod(self, dim.toLong()); }
OPERATOR(Cummax, Tensor self, int64_t dim, Out values, Out indices) {
  auto [value, index] = at::cummax(self, dim);
  values = value;
  indices = index;
}
OPERATOR(Cummin, Tensor self, int64_t dim, Out values, Out indices) {
  auto [value, index] = at::cummin(self, dim);
  values = value;
  indices = index;
}
