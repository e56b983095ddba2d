// Convolutions. Computed in float: the CPU has no half-precision kernel for all of them, and a
// device accumulates in float too.
#include "operator.h"

namespace {

Tensor wide(const Tensor& tensor) {
  return tensor.defined() && tensor.is_floating_point() ? tensor.to(at::kFloat) : tensor;
}

std::optional<Tensor> wide_if_defined(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Tensor>(wide(tensor)) : std::nullopt;
}

}  // namespace

OPERATOR(Convolution, Tensor self, Tensor weight, Tensor bias, Ints stride, Ints padding,
         Ints dilation, bool transposed, Ints output_padding, int64_t groups, Out out, int8_t) {
  out = at::convolution(wide(self), wide(weight), wide_if_defined(bias), stride, padding, dilation,
                        transposed, output_padding, groups);
}
OPERATOR(ConvDepthwise2d, Tensor self, Tensor weight, Ints, Tensor bias, Ints stride, Ints padding,
         Ints dilation, Out out, int8_t) {
  out = at::convolution(wide(self), wide(weight), wide_if_defined(bias), stride, padding, dilation,
                        false, {0, 0}, self.size(1));
}
OPERATOR(ConvolutionBackward, Tensor grad, Tensor self, Tensor weight, OptionalInts bias_sizes,
         Ints stride, Ints padding, Ints dilation, bool transposed, Ints output_padding,
         int64_t groups, std::vector<uint8_t> wanted, int8_t, Out grad_self, Out grad_weight,
         Out grad_bias) {
  auto [to_self, to_weight, to_bias] = at::convolution_backward(
      wide(grad), wide(self), wide(weight),
      bias_sizes ? at::OptionalIntArrayRef(*bias_sizes) : at::OptionalIntArrayRef(), stride,
      padding, dilation, transposed, output_padding, groups,
      {wanted.at(0) != 0, wanted.at(1) != 0, wanted.at(2) != 0});
  if (to_self.defined()) grad_self = to_self;
  if (to_weight.defined()) grad_weight = to_weight;
  if (to_bias.defined()) grad_bias = to_bias;
}
