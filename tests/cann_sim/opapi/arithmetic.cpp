// Two tensors, or a tensor and a number.
#include "operator.h"

#define BINARY(Name, Other, function) \
  OPERATOR(Name, Tensor self, Other other, Out out) { out = function(self, other); }

#define BINARY_AND_INPLACE(Name, Other, function) \
  BINARY(Name, Other, function)                   \
  OPERATOR(Inplace##Name, Out self, Other other) { self = function(self, other); }

#define SCALED(Name, Other, function)                                    \
  OPERATOR(Name, Tensor self, Other other, Scalar alpha, Out out) {      \
    out = function(self, other, alpha);                                  \
  }                                                                      \
  OPERATOR(Inplace##Name, Out self, Other other, Scalar alpha) {         \
    self = function(self, other, alpha);                                 \
  }

SCALED(Add, Tensor, at::add)
SCALED(Adds, Scalar, at::add)
SCALED(Sub, Tensor, at::sub)
SCALED(Subs, Scalar, at::sub)

BINARY_AND_INPLACE(Mul, Tensor, at::mul)
BINARY_AND_INPLACE(Muls, Scalar, at::mul)
BINARY_AND_INPLACE(Div, Tensor, at::div)
BINARY_AND_INPLACE(Divs, Scalar, at::div)
BINARY_AND_INPLACE(FloorDivide, Tensor, at::floor_divide)
BINARY_AND_INPLACE(FloorDivides, Scalar, at::floor_divide)
BINARY_AND_INPLACE(FmodTensor, Tensor, at::fmod)
BINARY_AND_INPLACE(FmodScalar, Scalar, at::fmod)
BINARY_AND_INPLACE(RemainderTensorTensor, Tensor, at::remainder)
BINARY_AND_INPLACE(RemainderTensorScalar, Scalar, at::remainder)
BINARY_AND_INPLACE(PowTensorTensor, Tensor, at::pow)
BINARY_AND_INPLACE(PowTensorScalar, Scalar, at::pow)
BINARY_AND_INPLACE(Atan2, Tensor, at::atan2)
BINARY_AND_INPLACE(BitwiseAndTensor, Tensor, at::bitwise_and)
BINARY_AND_INPLACE(BitwiseAndScalar, Scalar, at::bitwise_and)
BINARY_AND_INPLACE(BitwiseOrTensor, Tensor, at::bitwise_or)
BINARY_AND_INPLACE(BitwiseOrScalar, Scalar, at::bitwise_or)
BINARY_AND_INPLACE(BitwiseXorTensor, Tensor, at::bitwise_xor)
BINARY_AND_INPLACE(BitwiseXorScalar, Scalar, at::bitwise_xor)
BINARY_AND_INPLACE(LogicalAnd, Tensor, at::logical_and)
BINARY_AND_INPLACE(LogicalOr, Tensor, at::logical_or)
BINARY_AND_INPLACE(EqTensor, Tensor, at::eq)
BINARY_AND_INPLACE(EqScalar, Scalar, at::eq)
BINARY_AND_INPLACE(NeTensor, Tensor, at::ne)
BINARY_AND_INPLACE(NeScalar, Scalar, at::ne)
BINARY_AND_INPLACE(LtTensor, Tensor, at::lt)
BINARY_AND_INPLACE(LtScalar, Scalar, at::lt)
BINARY_AND_INPLACE(LeTensor, Tensor, at::le)
BINARY_AND_INPLACE(LeScalar, Scalar, at::le)
BINARY_AND_INPLACE(GtTensor, Tensor, at::gt)
BINARY_AND_INPLACE(GtScalar, Scalar, at::gt)
BINARY_AND_INPLACE(GeTensor, Tensor, at::ge)
BINARY_AND_INPLACE(GeScalar, Scalar, at::ge)
BINARY_AND_INPLACE(ClampMin, Scalar, at::clamp_min)
BINARY_AND_INPLACE(ClampMax, Scalar, at::clamp_max)
BINARY_AND_INPLACE(ClampMinTensor, Tensor, at::clamp_min)
BINARY_AND_INPLACE(ClampMaxTensor, Tensor, at::clamp_max)

BINARY(LessScalar, Scalar, at::lt)
BINARY(LogicalXor, Tensor, at::logical_xor)
BINARY(Maximum, Tensor, at::maximum)
BINARY(Minimum, Tensor, at::minimum)
BINARY(Gcd, Tensor, at::gcd)
BINARY(LeftShift, Tensor, at::bitwise_left_shift)
BINARY(LeftShifts, Scalar, at::bitwise_left_shift)
BINARY(RightShift, Tensor, at::bitwise_right_shift)
BINARY(LogAddExp, Tensor, at::logaddexp)
BINARY(LogAddExp2, Tensor, at::logaddexp2)
BINARY(XLogYTensor, Tensor, at::xlogy)
BINARY(XLogYScalarOther, Scalar, at::xlogy)
BINARY(Complex, Tensor, at::complex)
BINARY(Polar, Tensor, at::polar)

OPERATOR(PowScalarTensor, Scalar self, Tensor exponent, Out out) { out = at::pow(self, exponent); }
OPERATOR(RemainderScalarTensor, Scalar self, Tensor other, Out out) {
  out = at::remainder(self, other);
}
OPERATOR(XLogYScalarSelf, Scalar self, Tensor other, Out out) { out = at::xlogy(self, other); }

OPERATOR(Rsub, Tensor self, Tensor other, Scalar alpha, Out out) {
  out = at::rsub(self, other, alpha);
}
OPERATOR(Rsubs, Tensor self, Scalar other, Scalar alpha, Out out) {
  out = at::rsub(self, other, alpha);
}
OPERATOR(AddRelu, Tensor self, Tensor other, Scalar alpha, Out out) {
  out = at::relu(at::add(self, other, alpha));
}

namespace {

std::optional<std::string_view> rounding(int mode) {
  if (mode == 1) return "trunc";
  if (mode == 2) return "floor";
  return std::nullopt;
}

}  // namespace

OPERATOR(DivMod, Tensor self, Tensor other, int mode, Out out) {
  out = at::div(self, other, rounding(mode));
}
OPERATOR(DivMods, Tensor self, Scalar other, int mode, Out out) {
  out = at::div(self, other, rounding(mode));
}
OPERATOR(InplaceDivMod, Out self, Tensor other, int mode) {
  self = at::div(self, other, rounding(mode));
}
OPERATOR(InplaceDivMods, Out self, Scalar other, int mode) {
  self = at::div(self, other, rounding(mode));
}

OPERATOR(Clamp, Tensor self, OptionalScalar low, OptionalScalar high, Out out) {
  out = at::clamp(self, low, high);
}
OPERATOR(ClampTensor, Tensor self, Tensor low, Tensor high, Out out) {
  using Optional = std::optional<Tensor>;
  out = at::clamp(self, low.defined() ? Optional(low) : Optional(),
                  high.defined() ? Optional(high) : Optional());
}

OPERATOR(Addcmul, Tensor self, Tensor first, Tensor second, Scalar value, Out out) {
  out = at::addcmul(self, first, second, value);
}
OPERATOR(InplaceAddcmul, Out self, Tensor first, Tensor second, Scalar value) {
  self = at::addcmul(self, first, second, value);
}
OPERATOR(Addcdiv, Tensor self, Tensor first, Tensor second, Scalar value, Out out) {
  out = at::addcdiv(self, first, second, value);
}
OPERATOR(InplaceAddcdiv, Out self, Tensor first, Tensor second, Scalar value) {
  self = at::addcdiv(self, first, second, value);
}

OPERATOR(Lerp, Tensor self, Tensor end, Tensor weight, Out out) {
  out = at::lerp(self, end, weight);
}
OPERATOR(InplaceLerp, Out self, Tensor end, Tensor weight) { self = at::lerp(self, end, weight); }
OPERATOR(Lerps, Tensor self, Tensor end, Scalar weight, Out out) {
  out = at::lerp(self, end, weight);
}
OPERATOR(InplaceLerps, Out self, Tensor end, Scalar weight) { self = at::lerp(self, end, weight); }

OPERATOR(SWhere, Tensor condition, Tensor self, Tensor other, Out out) {
  out = at::where(condition.to(at::kBool), self, other);
}

OPERATOR(IsClose, Tensor self, Tensor other, double rtol, double atol, bool equal_nan, Out out) {
  out = at::isclose(self, other, rtol, atol, equal_nan);
}
OPERATOR(Equal, Tensor self, Tensor other, Out out) { out.fill_(at::equal(self, other)); }
