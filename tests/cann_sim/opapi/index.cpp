// Reading and writing at positions that a tensor names.
#include "operator.h"

namespace {

// An empty 1-D tensor in the list stands for "no index in this dimension".
c10::List<std::optional<Tensor>> index_list(const Tensors& indices) {
  c10::List<std::optional<Tensor>> list;
  for (const Tensor& index : indices) {
    const bool none = !index.defined() || (index.dim() == 1 && index.numel() == 0);
    list.push_back(none ? std::nullopt : std::optional<Tensor>(index));
  }
  return list;
}

Tensor scattered(const Tensor& self, int64_t dim, const Tensor& index, const auto& source,
                 int64_t reduction) {
  if (reduction == 0) return at::scatter(self, dim, index, source);
  return at::scatter(self, dim, index, source, reduction == 1 ? "add" : "multiply");
}

}  // namespace

OPERATOR(Index, Tensor self, Tensors indices, Out out) {
  if (out.numel() == 0) return;  // an index without elements cannot be told from none
  out = at::index(self, index_list(indices));
}
OPERATOR(IndexPutImpl, Out self, Tensors indices, Tensor values, bool accumulate, bool) {
  const auto list = index_list(indices);
  bool any = false;
  for (const std::optional<Tensor>& index : list) any = any || index.has_value();
  if (!any || values.numel() == 0) return;  // only indices without elements: nothing to put
  at::_index_put_impl_(self, list, values.to(self.dtype()), accumulate);
}

OPERATOR(IndexSelect, Tensor self, int64_t dim, Tensor index, Out out) {
  out = at::index_select(self, dim, index);
}
OPERATOR(IndexAdd, Tensor self, int64_t dim, Tensor index, Tensor source, Scalar alpha, Out out) {
  out = at::index_add(self, dim, index, source.to(self.dtype()), alpha);
}
OPERATOR(IndexCopy, Tensor self, int64_t dim, Tensor index, Tensor source, Out out) {
  out = at::index_copy(self, dim, index, source);
}
OPERATOR(InplaceIndexCopy, Out self, int64_t dim, Tensor index, Tensor source) {
  self.index_copy_(dim, index, source);
}
OPERATOR(IndexFill, Tensor self, int64_t dim, Tensor index, Scalar value, Out out) {
  out = at::index_fill(self, dim, index, value);
}
OPERATOR(InplaceIndexFill, Out self, int64_t dim, Tensor index, Scalar value) {
  self.index_fill_(dim, index, value);
}
OPERATOR(IndexFillTensor, Tensor self, int64_t dim, Ints index, Scalar value, Out out) {
  out = at::index_fill(self, dim, at::tensor(index), value);
}
OPERATOR(InplaceIndexFillTensor, Out self, int64_t dim, Ints index, Scalar value) {
  self.index_fill_(dim, at::tensor(index), value);
}

OPERATOR(Gather, Tensor self, int64_t dim, Tensor index, Out out) {
  out = at::gather(self, dim, index.to(at::kLong));
}
OPERATOR(Scatter, Tensor self, int64_t dim, Tensor index, Tensor source, int64_t reduction,
         Out out) {
  out = scattered(self, dim, index.to(at::kLong), source, reduction);
}
OPERATOR(ScatterValue, Tensor self, int64_t dim, Tensor index, Scalar value, int64_t reduction,
         Out out) {
  out = scattered(self, dim, index.to(at::kLong), value, reduction);
}
OPERATOR(InplaceScatter, Out self, int64_t dim, Tensor index, Tensor source, int64_t reduction) {
  self = scattered(self, dim, index.to(at::kLong), source, reduction);
}
OPERATOR(InplaceScatterValue, Out self, int64_t dim, Tensor index, Scalar value,
         int64_t reduction) {
  self = scattered(self, dim, index.to(at::kLong), value, reduction);
}
OPERATOR(ScatterAdd, Tensor self, int64_t dim, Tensor index, Tensor source, Out out) {
  out = at::scatter_add(self, dim, index.to(at::kLong), source);
}

namespace {

constexpr std::array kReductions = {"none", "sum", "prod", "amax", "amin", "mean"};

}  // namespace

OPERATOR(ScatterReduce, Tensor self, int64_t dim, Tensor index, Tensor source, int64_t reduction,
         bool include_self, Out out) {
  out = at::scatter_reduce(self, dim, index, source, kReductions.at(reduction), include_self);
}
OPERATOR(InplaceScatterReduce, Out self, int64_t dim, Tensor index, Tensor source,
         int64_t reduction, bool include_self) {
  self = at::scatter_reduce(self, dim, index, source, kReductions.at(reduction), include_self);
}

OPERATOR(Take, Tensor self, Tensor index, Out out) { out = at::take(self, index); }
OPERATOR(InplacePut, Out self, Tensor index, Tensor source, bool accumulate) {
  self.put_(index, source, accumulate);
}

OPERATOR(InplaceMaskedFillScalar, Out self, Tensor mask, Scalar value) {
  self.masked_fill_(mask, value);
}
OPERATOR(InplaceMaskedFillTensor, Out self, Tensor mask, Tensor value) {
  self.masked_fill_(mask, value.reshape({}));
}
OPERATOR(InplaceMaskedScatter, Out self, Tensor mask, Tensor source) {
  self.masked_scatter_(mask, source);
}
OPERATOR(MaskedSelect, Tensor self, Tensor mask, Out out) {
  out.take(at::masked_select(self, mask.to(at::kBool)));
}
OPERATOR(Nonzero, Tensor self, Out out) { out.take(at::nonzero(self)); }
OPERATOR(NonzeroV2, Tensor self, Out out) { out.take(at::nonzero(self).t()); }

OPERATOR(Embedding, Tensor weight, Tensor indices, Out out) {
  out = at::embedding(weight, indices);
}
OPERATOR(EmbeddingDenseBackward, Tensor grad, Tensor indices, int64_t rows, int64_t padding,
         bool by_frequency, Out out) {
  out = at::embedding_dense_backward(grad, indices, rows, padding, by_frequency);
}
OPERATOR(EmbeddingRenorm, Out self, Tensor indices, double max_norm, double norm_type) {
  at::embedding_renorm_(self, indices, max_norm, norm_type);
}
OPERATOR(EmbeddingBag, Tensor weight, Tensor indices, Tensor offsets, bool by_frequency,
         int64_t mode, bool sparse, Tensor sample_weights, bool include_last, int64_t padding,
         Out out, Out offset_to_bag, Out bag_size, Out max_indices) {
  using Optional = std::optional<Tensor>;
  auto [bag, to_bag, size, most] = at::_embedding_bag(
      weight, indices, offsets, by_frequency, mode, sparse,
      sample_weights.defined() ? Optional(sample_weights) : Optional(), include_last, padding);
  out = bag;
  if (offset_to_bag.sizes() == to_bag.sizes()) offset_to_bag = to_bag;
  if (bag_size.sizes() == size.sizes()) bag_size = size;
  if (max_indices.sizes() == most.sizes()) max_indices = most;
}
