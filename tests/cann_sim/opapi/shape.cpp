// Making, filling, joining, moving: no arithmetic on the values.
#include "operator.h"

OPERATOR(InplaceCopy, Out self, Tensor source) { self.copy_(source); }
OPERATOR(Cast, Tensor self, DType dtype, Out out) { out = self.to(dtype); }

OPERATOR(InplaceZero, Out self) { self.zero_(); }
OPERATOR(InplaceOne, Out self) { self.fill_(1); }
OPERATOR(InplaceFillScalar, Out self, Scalar value) { self.fill_(value); }
OPERATOR(InplaceFillTensor, Out self, Tensor value) { self.fill_(value.reshape({})); }
OPERATOR(InplaceFillDiagonal, Out self, Scalar value, bool wrap) {
  self.fill_diagonal_(value, wrap);
}

namespace {

at::TensorOptions like(const Tensor& out) { return at::TensorOptions().dtype(out.dtype()); }

}  // namespace

OPERATOR(Arange, Scalar start, Scalar end, Scalar step, Out out) {
  out = at::arange(start, end, step, like(out));
}
OPERATOR(Range, Scalar start, Scalar end, Scalar step, Out out) {
  Tensor result = at::empty({0}, like(out));
  out = at::range_out(result, start, end, step);
}
OPERATOR(Linspace, Scalar start, Scalar end, int64_t steps, Out out) {
  out = at::linspace(start, end, steps, like(out));
}
OPERATOR(LogSpace, Scalar start, Scalar end, int64_t steps, double base, Out out) {
  out = at::logspace(start, end, steps, base, like(out));
}
OPERATOR(Eye, int64_t rows, int64_t columns, Out out) { out = at::eye(rows, columns, like(out)); }
OPERATOR(OneHot, Tensor self, int64_t depth, Tensor on, Tensor off, int64_t axis, Out out) {
  TORCH_CHECK(axis == -1, "one-hot along axis ", axis);
  const Tensor hot = at::arange(depth).eq(self.unsqueeze(-1));
  out = at::where(hot, on.reshape({}), off.reshape({}));
}

OPERATOR(Cat, Tensors tensors, int64_t dim, Out out) { out = at::cat(tensors, dim); }
OPERATOR(Stack, Tensors tensors, int64_t dim, Out out) { out = at::stack(tensors, dim); }
OPERATOR(SplitWithSize, Tensor self, Ints sizes, int64_t dim, Outs outs) {
  const auto parts = at::split_with_sizes(self, sizes, dim);
  for (size_t i = 0; i < parts.size(); ++i) outs[i] = parts[i];
}
OPERATOR(Permute, Tensor self, Ints dims, Out out) { out = at::permute(self, dims); }
OPERATOR(Flip, Tensor self, Ints dims, Out out) { out = at::flip(self, dims); }
OPERATOR(Roll, Tensor self, Ints shifts, Ints dims, Out out) { out = at::roll(self, shifts, dims); }
OPERATOR(Repeat, Tensor self, Ints repeats, Out out) { out = self.repeat(repeats); }
OPERATOR(ChannelShuffle, Tensor self, int64_t groups, Out out) {
  out = at::channel_shuffle(self, groups);
}

OPERATOR(RepeatInterleave, Tensor self, Tensor repeats, int64_t, Out out) {
  out = at::repeat_interleave(self, repeats);
}
OPERATOR(RepeatInterleaveWithDim, Tensor self, Tensor repeats, int64_t dim, int64_t, Out out) {
  out = at::repeat_interleave(self, repeats, dim);
}
OPERATOR(RepeatInterleaveInt, Tensor self, int64_t repeats, int64_t, Out out) {
  out = at::repeat_interleave(self, repeats);
}
OPERATOR(RepeatInterleaveIntWithDim, Tensor self, int64_t repeats, int64_t dim, int64_t, Out out) {
  out = at::repeat_interleave(self, repeats, dim);
}
OPERATOR(RepeatInterleaveTensor, Tensor repeats, int64_t, Out out) {
  out = at::repeat_interleave(repeats);
}
OPERATOR(RepeatInterleaveGrad, Tensor grad, Tensor repeats, int64_t dim, Out out) {
  Tensor sum = at::zeros(out.sizes(), grad.options());
  out = sum.index_add_(dim, at::repeat_interleave(repeats), grad);
}

OPERATOR(Tril, Tensor self, int64_t diagonal, Out out) { out = at::tril(self, diagonal); }
OPERATOR(Triu, Tensor self, int64_t diagonal, Out out) { out = at::triu(self, diagonal); }
OPERATOR(InplaceTril, Out self, int64_t diagonal) { self = at::tril(self, diagonal); }
OPERATOR(InplaceTriu, Out self, int64_t diagonal) { self = at::triu(self, diagonal); }

OPERATOR(ConstantPadNd, Tensor self, Ints pad, Scalar value, Out out) {
  out = at::constant_pad_nd(self, pad, value);
}

#define PADDING(Name, forward, backward)                                            \
  OPERATOR(Name, Tensor self, Ints pad, Out out) { out = forward(self, pad); }      \
  OPERATOR(Name##Backward, Tensor grad, Tensor self, Ints pad, Out out) {           \
    out = backward(grad, self, pad);                                                \
  }

PADDING(ReflectionPad1d, at::reflection_pad1d, at::reflection_pad1d_backward)
PADDING(ReflectionPad2d, at::reflection_pad2d, at::reflection_pad2d_backward)
PADDING(ReflectionPad3d, at::reflection_pad3d, at::reflection_pad3d_backward)
PADDING(ReplicationPad1d, at::replication_pad1d, at::replication_pad1d_backward)
PADDING(ReplicationPad2d, at::replication_pad2d, at::replication_pad2d_backward)
PADDING(ReplicationPad3d, at::replication_pad3d, at::replication_pad3d_backward)

OPERATOR(Im2col, Tensor self, Ints kernel, Ints dilation, Ints padding, Ints stride, Out out) {
  out = at::im2col(self, kernel, dilation, padding, stride);
}
OPERATOR(Im2colBackward, Tensor grad, Ints size, Ints kernel, Ints dilation, Ints padding,
         Ints stride, Out out) {
  out = at::col2im(grad, size, kernel, dilation, padding, stride);
}
OPERATOR(UnfoldGrad, Tensor grad, Ints sizes, int64_t dim, int64_t size, int64_t step, Out out) {
  out = at::unfold_backward(grad, sizes, dim, size, step);
}
