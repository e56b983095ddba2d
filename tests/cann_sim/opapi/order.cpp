// Sorting, searching, counting.
#include "operator.h"

OPERATOR(Sort, Tensor self, bool stable, int64_t dim, bool descending, Out values, Out indices) {
  auto [value, index] = at::sort(self, stable, dim, descending);
  values = value;
  indices = index;
}
OPERATOR(Topk, Tensor self, int64_t k, int64_t dim, bool largest, bool sorted, Out values,
         Out indices) {
  auto [value, index] = at::topk(self, k, dim, largest, sorted);
  values = value;
  indices = index;
}
OPERATOR(Kthvalue, Tensor self, int64_t k, int64_t dim, bool keepdim, Out values, Out indices) {
  auto [value, index] = at::kthvalue(self, k, dim, keepdim);
  values = value;
  indices = index;
}
OPERATOR(Median, Tensor self, Out out) { out = at::median(self); }
OPERATOR(NanMedian, Tensor self, Out out) { out = at::nanmedian(self); }
OPERATOR(MedianDim, Tensor self, int64_t dim, bool keepdim, Out values, Out indices) {
  auto [value, index] = at::median(self, dim, keepdim);
  values = value;
  indices = index;
}
OPERATOR(NanMedianDim, Tensor self, int64_t dim, bool keepdim, Out values, Out indices) {
  auto [value, index] = at::nanmedian(self, dim, keepdim);
  values = value;
  indices = index;
}

OPERATOR(Unique, Tensor self, bool sorted, bool return_inverse, Out values, Out inverse) {
  auto [value, back] = at::_unique(self, sorted, return_inverse);
  values.take(value);
  if (return_inverse) inverse = back;
}
OPERATOR(Unique2, Tensor self, bool sorted, bool return_inverse, bool return_counts, Out values,
         Out inverse, Out counts) {
  auto [value, back, count] = at::_unique2(self, sorted, return_inverse, return_counts);
  values.take(value);
  if (return_inverse || return_counts) inverse.take(back);
  if (return_counts) counts.take(count);
}
OPERATOR(UniqueConsecutive, Tensor self, bool return_inverse, bool return_counts, int64_t dim,
         Out values, Out inverse, Out counts) {
  constexpr int64_t kFlattened = 1000;
  auto [value, back, count] = at::unique_consecutive(
      self, return_inverse, return_counts,
      dim == kFlattened ? std::nullopt : std::optional<int64_t>(dim));
  values.take(value);
  if (return_inverse) inverse.take(back);
  if (return_counts) counts.take(count);
}
OPERATOR(UniqueDim, Tensor self, bool sorted, bool return_inverse, int64_t dim, Out values,
         Out inverse, Out counts) {
  auto [value, back, count] = at::unique_dim(self, dim, sorted, return_inverse, true);
  values.take(value);
  if (return_inverse) inverse.take(back);
  counts.take(count);
}

namespace {

std::optional<Tensor> if_defined(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Tensor>(tensor) : std::nullopt;
}

}  // namespace

OPERATOR(SearchSorted, Tensor sequence, Tensor self, bool as_int, bool right, Tensor sorter,
         Out out) {
  out = at::searchsorted(sequence, self, as_int, right, std::nullopt, if_defined(sorter));
}
OPERATOR(SearchSorteds, Tensor sequence, Scalar self, bool as_int, bool right, Tensor sorter,
         Out out) {
  out = at::searchsorted(sequence, self, as_int, right, std::nullopt, if_defined(sorter));
}
OPERATOR(Bucketize, Tensor self, Tensor boundaries, bool as_int, bool right, Out out) {
  out = at::bucketize(self, boundaries, as_int, right);
}
OPERATOR(IsInTensorScalar, Tensor element, Scalar tested, bool unique, bool invert, Out out) {
  out = at::isin(element, tested, unique, invert);
}
OPERATOR(IsInScalarTensor, Scalar element, Tensor tested, bool unique, bool invert, Out out) {
  out = at::isin(element, tested, unique, invert);
}
OPERATOR(Bincount, Tensor self, Tensor weights, int64_t least, Out out) {
  out = at::bincount(self, if_defined(weights), least);
}
OPERATOR(Histc, Tensor self, int64_t bins, Scalar low, Scalar high, Out out) {
  out = at::histc(self.to(at::kFloat), bins, low, high);
}
