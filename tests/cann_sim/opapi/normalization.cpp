// Softmax and the norms. Statistics are computed in float, as a device does.
#include "operator.h"

namespace {

std::optional<Tensor> if_defined(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Tensor>(tensor) : std::nullopt;
}

std::optional<Tensor> as_float(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Tensor>(tensor.to(at::kFloat)) : std::nullopt;
}

void set(Out& out, const Tensor& result) {
  if (out.defined() && result.defined()) out = result.reshape(out.sizes());
}

Ints last_dims(const Tensor& self, const Tensor& weight) {
  Ints dims;
  for (int64_t dim = self.dim() - weight.dim(); dim < self.dim(); ++dim) dims.push_back(dim);
  return dims;
}

}  // namespace

OPERATOR(Softmax, Tensor self, int64_t dim, Out out) {
  out = at::softmax(self, dim, out.scalar_type());
}
OPERATOR(LogSoftmax, Tensor self, int64_t dim, Out out) {
  out = at::log_softmax(self, dim, out.scalar_type());
}
OPERATOR(SoftmaxBackward, Tensor grad, Tensor result, int64_t dim, Out out) {
  out = at::_softmax_backward_data(grad, result, dim, grad.scalar_type());
}
OPERATOR(LogSoftmaxBackward, Tensor grad, Tensor result, int64_t dim, Out out) {
  out = at::_log_softmax_backward_data(grad, result, dim, grad.scalar_type());
}
OPERATOR(ScaledMaskedSoftmax, Tensor self, Tensor mask, double scale, bool causal, Out out) {
  const Tensor scores = self.to(at::kFloat) * scale;
  const Tensor hidden =
      causal ? at::ones({self.size(-2), self.size(-1)}, at::kBool).triu(1) : mask.to(at::kBool);
  out = at::softmax(scores.masked_fill(hidden, -10000.0), -1);
}

OPERATOR(LayerNorm, Tensor self, Ints shape, Tensor weight, Tensor bias, double eps, Out out,
         Out mean, Out rstd) {
  auto [result, centre, scale] = at::native_layer_norm(
      self.to(at::kFloat), shape, as_float(weight), as_float(bias), eps);
  out = result;
  set(mean, centre);
  set(rstd, scale);
}
OPERATOR(FastLayerNorm, Tensor self, Ints shape, Tensor weight, Tensor bias, double eps, Out out,
         Out mean, Out rstd) {
  auto [result, centre, scale] = at::native_layer_norm(
      self.to(at::kFloat), shape, as_float(weight), as_float(bias), eps);
  out = result;
  set(mean, centre);
  set(rstd, scale);
}
OPERATOR(LayerNormBackward, Tensor grad, Tensor self, Ints shape, Tensor mean, Tensor rstd,
         Tensor weight, Tensor bias, std::vector<uint8_t> wanted, Out grad_self, Out grad_weight,
         Out grad_bias) {
  auto [to_self, to_weight, to_bias] = at::native_layer_norm_backward(
      grad.to(at::kFloat), self.to(at::kFloat), shape, mean.to(at::kFloat), rstd.to(at::kFloat),
      as_float(weight), as_float(bias),
      {wanted.at(0) != 0, wanted.at(1) != 0, wanted.at(2) != 0});
  set(grad_self, to_self);
  set(grad_weight, to_weight);
  set(grad_bias, to_bias);
}

OPERATOR(RmsNorm, Tensor self, Tensor weight, double eps, Out out, Out rstd) {
  const Tensor wide = self.to(at::kFloat);
  const Tensor scale = at::rsqrt(at::mean(wide * wide, last_dims(self, weight), true) + eps);
  out = wide * scale * weight.to(at::kFloat);
  set(rstd, scale);
}
OPERATOR(RmsNormGrad, Tensor grad, Tensor self, Tensor rstd, Tensor weight, Out grad_self,
         Out grad_weight) {
  const auto dims = last_dims(self, weight);
  Ints scale_shape = self.sizes().vec();
  for (const int64_t dim : dims) scale_shape[dim] = 1;
  const Tensor scale = rstd.to(at::kFloat).reshape(scale_shape);
  const Tensor normal = self.to(at::kFloat) * scale;
  const Tensor wide = grad.to(at::kFloat);
  const Tensor inner = wide * weight.to(at::kFloat);
  grad_self = (inner - normal * at::mean(inner * normal, dims, true)) * scale;
  set(grad_weight, (wide * normal).sum_to_size(weight.sizes()));
}
OPERATOR(AddRmsNorm, Tensor first, Tensor second, Tensor weight, double eps, Out out, Out rstd,
         Out sum) {
  const Tensor total = first + second;
  const Tensor wide = total.to(at::kFloat);
  const Tensor scale = at::rsqrt(at::mean(wide * wide, last_dims(total, weight), true) + eps);
  out = wide * scale * weight.to(at::kFloat);
  set(rstd, scale);
  sum = total;
}

OPERATOR(GroupNorm, Tensor self, Tensor weight, Tensor bias, int64_t n, int64_t c, int64_t pixels,
         int64_t groups, double eps, Out out, Out mean, Out rstd) {
  auto [result, centre, scale] =
      at::native_group_norm(self.to(at::kFloat).contiguous(), as_float(weight), as_float(bias), n,
                            c, pixels, groups, eps);
  out = result;
  set(mean, centre);
  set(rstd, scale);
}
OPERATOR(GroupNormBackward, Tensor grad, Tensor self, Tensor mean, Tensor rstd, Tensor weight,
         int64_t n, int64_t c, int64_t pixels, int64_t groups, std::vector<uint8_t> wanted,
         Out grad_self, Out grad_weight, Out grad_bias) {
  auto [to_self, to_weight, to_bias] = at::native_group_norm_backward(
      grad.to(at::kFloat).contiguous(), self.to(at::kFloat).contiguous(), mean.to(at::kFloat),
      rstd.to(at::kFloat), as_float(weight), n, c, pixels, groups,
      {wanted.at(0) != 0, wanted.at(1) != 0, wanted.at(2) != 0});
  set(grad_self, to_self);
  set(grad_weight, to_weight);
  set(grad_bias, to_bias);
}

OPERATOR(BatchNorm, Tensor self, Tensor weight, Tensor bias, Tensor running_mean,
         Tensor running_var, bool training, double momentum, double eps, Out out, Out mean,
         Out rstd) {
  const auto float_mean = as_float(running_mean);
  const auto float_var = as_float(running_var);
  auto [result, centre, scale] =
      at::native_batch_norm(self.to(at::kFloat), as_float(weight), as_float(bias), float_mean,
                            float_var, training, momentum, eps);
  out = result;
  if (!training) return;
  if (running_mean.defined()) running_mean.copy_(*float_mean);
  if (running_var.defined()) running_var.copy_(*float_var);
  set(mean, centre);
  set(rstd, scale);
}
OPERATOR(BatchNormBackward, Tensor grad, Tensor self, Tensor weight, Tensor running_mean,
         Tensor running_var, Tensor mean, Tensor rstd, bool training, double eps,
         std::vector<uint8_t> wanted, Out grad_self, Out grad_weight, Out grad_bias) {
  auto [to_self, to_weight, to_bias] = at::native_batch_norm_backward(
      grad.to(at::kFloat), self.to(at::kFloat), as_float(weight), as_float(running_mean),
      as_float(running_var), training ? if_defined(mean) : std::nullopt,
      training ? if_defined(rstd) : std::nullopt, training, eps,
      {wanted.at(0) != 0, wanted.at(1) != 0, wanted.at(2) != 0});
  set(grad_self, to_self);
  set(grad_weight, to_weight);
  set(grad_bias, to_bias);
}

OPERATOR(Renorm, Tensor self, Scalar p, int64_t dim, Scalar most, Out out) {
  out = at::renorm(self, p, dim, most);
}
OPERATOR(InplaceRenorm, Out self, Scalar p, int64_t dim, Scalar most) {
  self = at::renorm(self, p, dim, most);
}
