// The same operation on every tensor of a list. Optimisers live on these.
#include "operator.h"

#define EACH(Name, function)                                                      \
  OPERATOR(Foreach##Name, Tensors selves, Outs outs) {                            \
    for (size_t i = 0; i < selves.size(); ++i) outs[i] = function(selves[i]);     \
  }

EACH(Abs, at::abs)
EACH(Acos, at::acos)
EACH(Asin, at::asin)
EACH(Atan, at::atan)
EACH(Cos, at::cos)
EACH(Cosh, at::cosh)
EACH(Erf, at::erf)
EACH(Erfc, at::erfc)
EACH(Exp, at::exp)
EACH(Expm1, at::expm1)
EACH(Log, at::log)
EACH(Log10, at::log10)
EACH(Log1p, at::log1p)
EACH(Log2, at::log2)
EACH(Neg, at::neg)
EACH(Reciprocal, at::reciprocal)
EACH(Sigmoid, at::sigmoid)
EACH(Sign, at::sign)
EACH(Sin, at::sin)
EACH(Sinh, at::sinh)
EACH(Sqrt, at::sqrt)
EACH(Tan, at::tan)
EACH(Tanh, at::tanh)

namespace {

Tensor larger(const Tensor& self, const Tensor& other) { return at::maximum(self, other); }
Tensor larger(const Tensor& self, const Scalar& other) { return at::clamp_min(self, other); }
Tensor smaller(const Tensor& self, const Tensor& other) { return at::minimum(self, other); }
Tensor smaller(const Tensor& self, const Scalar& other) { return at::clamp_max(self, other); }

// A scalar in a one-element tensor: what the first versions of these operators take.
Scalar number(const Tensor& tensor) { return tensor.item(); }

}  // namespace

#define EACH_WITH_SCALAR(Name, function)                                                        \
  OPERATOR(Foreach##Name##Scalar, Tensors selves, Tensor other, Outs outs) {                    \
    for (size_t i = 0; i < selves.size(); ++i) outs[i] = function(selves[i], number(other));    \
  }                                                                                             \
  OPERATOR(Foreach##Name##ScalarV2, Tensors selves, Scalar other, Outs outs) {                  \
    for (size_t i = 0; i < selves.size(); ++i) outs[i] = function(selves[i], other);            \
  }                                                                                             \
  OPERATOR(Foreach##Name##ScalarList, Tensors selves, Scalars others, Outs outs) {              \
    for (size_t i = 0; i < selves.size(); ++i) outs[i] = function(selves[i], others[i]);        \
  }

#define EACH_WITH_LIST(Name, function)                                                          \
  OPERATOR(Foreach##Name##List, Tensors selves, Tensors others, Outs outs) {                    \
    for (size_t i = 0; i < selves.size(); ++i) outs[i] = function(selves[i], others[i]);        \
  }

#define EACH_WITH_SCALED_LIST(Name, function)                                                   \
  OPERATOR(Foreach##Name##List, Tensors selves, Tensors others, Tensor alpha, Outs outs) {      \
    for (size_t i = 0; i < selves.size(); ++i)                                                  \
      outs[i] = function(selves[i], others[i], number(alpha));                                  \
  }                                                                                             \
  OPERATOR(Foreach##Name##ListV2, Tensors selves, Tensors others, Scalar alpha, Outs outs) {    \
    for (size_t i = 0; i < selves.size(); ++i) outs[i] = function(selves[i], others[i], alpha); \
  }

EACH_WITH_SCALAR(Add, at::add)
EACH_WITH_SCALAR(Sub, at::sub)
EACH_WITH_SCALAR(Mul, at::mul)
EACH_WITH_SCALAR(Div, at::div)
EACH_WITH_SCALAR(Pow, at::pow)
EACH_WITH_SCALAR(Maximum, larger)
EACH_WITH_SCALAR(Minimum, smaller)
EACH_WITH_LIST(Mul, at::mul)
EACH_WITH_LIST(Div, at::div)
EACH_WITH_LIST(Pow, at::pow)
EACH_WITH_LIST(Maximum, larger)
EACH_WITH_LIST(Minimum, smaller)
EACH_WITH_SCALED_LIST(Add, at::add)
EACH_WITH_SCALED_LIST(Sub, at::sub)

#define EACH_WITH_PAIR(Name, function)                                                          \
  OPERATOR(Foreach##Name##Scalar, Tensors selves, Tensors first, Tensors second, Tensor value,  \
           Outs outs) {                                                                         \
    for (size_t i = 0; i < selves.size(); ++i)                                                  \
      outs[i] = function(selves[i], first[i], second[i], number(value));                        \
  }                                                                                             \
  OPERATOR(Foreach##Name##ScalarV2, Tensors selves, Tensors first, Tensors second,              \
           Scalar value, Outs outs) {                                                           \
    for (size_t i = 0; i < selves.size(); ++i)                                                  \
      outs[i] = function(selves[i], first[i], second[i], value);                                \
  }                                                                                             \
  OPERATOR(Foreach##Name##ScalarList, Tensors selves, Tensors first, Tensors second,            \
           Scalars values, Outs outs) {                                                         \
    for (size_t i = 0; i < selves.size(); ++i)                                                  \
      outs[i] = function(selves[i], first[i], second[i], values[i]);                            \
  }

EACH_WITH_PAIR(Addcmul, at::addcmul)
EACH_WITH_PAIR(Addcdiv, at::addcdiv)

OPERATOR(ForeachLerpScalar, Tensors selves, Tensors ends, Scalar weight, Outs outs) {
  for (size_t i = 0; i < selves.size(); ++i) outs[i] = at::lerp(selves[i], ends[i], weight);
}
OPERATOR(ForeachLerpList, Tensors selves, Tensors ends, Tensors weights, Outs outs) {
  for (size_t i = 0; i < selves.size(); ++i) outs[i] = at::lerp(selves[i], ends[i], weights[i]);
}
OPERATOR(ForeachPowScalarAndTensor, Scalar self, Tensors exponents, Outs outs) {
  for (size_t i = 0; i < exponents.size(); ++i) outs[i] = at::pow(self, exponents[i]);
}
OPERATOR(ForeachNorm, Tensors selves, Scalar order, Outs outs) {
  for (size_t i = 0; i < selves.size(); ++i)
    outs[i] = at::linalg_vector_norm(selves[i], order).reshape(outs[i].sizes());
}
OPERATOR(ForeachCopy, Tensors sources, Outs targets) {
  for (size_t i = 0; i < sources.size(); ++i) targets[i] = sources[i];
}
OPERATOR(ForeachZeroInplace, Outs selves) {
  for (Out& self : selves) self.zero_();
}
OPERATOR(ForeachNonFiniteCheckAndUnscale, Outs gradients, Out found, Tensor inverse_scale) {
  for (Out& gradient : gradients) {
    if (!at::isfinite(gradient).all().item<bool>()) found.fill_(1);
    gradient.mul_(inverse_scale.reshape({}));
  }
}

OPERATOR(ApplyAdamWV2, Out self, Out average, Out average_square, Out largest, Tensor gradient,
         Tensor step, float rate, float beta1, float beta2, float decay, float eps, bool amsgrad,
         bool maximize) {
  const Tensor slope = maximize ? -gradient : gradient;
  const double steps = step.item<double>() + 1;
  self.mul_(1 - static_cast<double>(rate) * decay);
  average.lerp_(slope, 1 - beta1);
  average_square.mul_(beta2).addcmul_(slope, slope, 1 - beta2);
  if (amsgrad) largest.copy_(at::maximum(largest, average_square));
  const Tensor& spread = amsgrad ? largest : average_square;
  const Tensor divisor = spread.sqrt() / std::sqrt(1 - std::pow(beta2, steps)) + eps;
  self.addcdiv_(average, divisor, -rate / (1 - std::pow(beta1, steps)));
}
