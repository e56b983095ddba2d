// One tensor in, one of the same shape out.
#include "operator.h"

#define UNARY(Name, function) \
  OPERATOR(Name, Tensor self, Out out) { out = function(self); }

#define UNARY_AND_INPLACE(Name, function) \
  UNARY(Name, function)                   \
  OPERATOR(Inplace##Name, Out self) { self = function(self); }

UNARY_AND_INPLACE(Acos, at::acos)
UNARY_AND_INPLACE(Acosh, at::acosh)
UNARY_AND_INPLACE(Asin, at::asin)
UNARY_AND_INPLACE(Asinh, at::asinh)
UNARY_AND_INPLACE(Atan, at::atan)
UNARY_AND_INPLACE(Atanh, at::atanh)
UNARY_AND_INPLACE(BitwiseNot, at::bitwise_not)
UNARY_AND_INPLACE(Ceil, at::ceil)
UNARY_AND_INPLACE(Cos, at::cos)
UNARY_AND_INPLACE(Cosh, at::cosh)
UNARY_AND_INPLACE(Erf, at::erf)
UNARY_AND_INPLACE(Erfc, at::erfc)
UNARY_AND_INPLACE(Erfinv, at::erfinv)
UNARY_AND_INPLACE(Exp, at::exp)
UNARY_AND_INPLACE(Exp2, at::exp2)
UNARY_AND_INPLACE(Expm1, at::expm1)
UNARY_AND_INPLACE(Floor, at::floor)
UNARY_AND_INPLACE(Frac, at::frac)
UNARY_AND_INPLACE(Hardsigmoid, at::hardsigmoid)
UNARY_AND_INPLACE(Hardswish, at::hardswish)
UNARY_AND_INPLACE(Log, at::log)
UNARY_AND_INPLACE(Log10, at::log10)
UNARY_AND_INPLACE(Log1p, at::log1p)
UNARY_AND_INPLACE(Log2, at::log2)
UNARY_AND_INPLACE(LogicalNot, at::logical_not)
UNARY_AND_INPLACE(Mish, at::mish)
UNARY_AND_INPLACE(Neg, at::neg)
UNARY_AND_INPLACE(Reciprocal, at::reciprocal)
UNARY_AND_INPLACE(Relu, at::relu)
UNARY_AND_INPLACE(Round, at::round)
UNARY_AND_INPLACE(Rsqrt, at::rsqrt)
UNARY_AND_INPLACE(Sigmoid, at::sigmoid)
UNARY_AND_INPLACE(Sin, at::sin)
UNARY_AND_INPLACE(Sinc, at::sinc)
UNARY_AND_INPLACE(Sinh, at::sinh)
UNARY_AND_INPLACE(Sqrt, at::sqrt)
UNARY_AND_INPLACE(Tan, at::tan)
UNARY_AND_INPLACE(Tanh, at::tanh)
UNARY_AND_INPLACE(Trunc, at::trunc)

UNARY(Abs, at::abs)
UNARY(AngleV2, at::angle)
UNARY(IsFinite, at::isfinite)
UNARY(IsNegInf, at::isneginf)
UNARY(IsPosInf, at::isposinf)
UNARY(LogSigmoid, at::log_sigmoid)
UNARY(Sign, at::sign)
UNARY(Signbit, at::signbit)
UNARY(Silu, at::silu)
UNARY(Square, at::square)

OPERATOR(RoundDecimals, Tensor self, int64_t decimals, Out out) {
  out = at::round(self, decimals);
}
OPERATOR(InplaceRoundDecimals, Out self, int64_t decimals) { self = at::round(self, decimals); }

OPERATOR(Logit, Tensor self, double eps, Out out) {
  out = at::logit(self, eps < 0 ? std::nullopt : std::optional<double>(eps));
}

OPERATOR(NanToNum, Tensor self, float nan, float positive, float negative, Out out) {
  out = at::nan_to_num(self, nan, positive, negative);
}
OPERATOR(InplaceNanToNum, Out self, float nan, float positive, float negative) {
  self = at::nan_to_num(self, nan, positive, negative);
}
