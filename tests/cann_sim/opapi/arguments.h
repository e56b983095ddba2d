// From aclnn's C arguments to what an operator's body wants to see.
//
// An argument is kept when the operator is planned, on the launching thread, and opened when
// it runs: handles may be gone by then, and a tensor must not be made under the user's modes.
#pragma once

#include "handles.h"

namespace sim {

using at::Scalar;
using at::Tensor;
using Ints = std::vector<int64_t>;
using Tensors = std::vector<Tensor>;
using OptionalScalar = std::optional<Scalar>;
using Scalars = std::vector<Scalar>;
using OptionalInts = std::optional<Ints>;
using DType = at::ScalarType;

// A tensor that the operator writes. Assigning converts the data type and demands the shape:
// a result of another shape would be garbage in the user's tensor.
class Out : public Tensor {
 public:
  Out() = default;
  explicit Out(aclTensor* handle) : Tensor(handle->open()), handle_(handle) {}

  Out& operator=(const Tensor& result) {
    if (!defined()) return *this;  // an optional output that nobody asked for
    TORCH_CHECK(sizes() == result.sizes(), "the result has shape ", result.sizes(),
                ", the output ", sizes());
    copy_(result);
    return *this;
  }

  // For results whose shape depends on data: the output is only as large as it may become,
  // and op-plugin asks the handle for the shape afterwards.
  void take(const Tensor& result) {
    if (!defined()) return;
    TORCH_CHECK(result.numel() <= numel(), "the result does not fit the output");
    handle_->sizes = result.sizes().vec();
    handle_->strides = result.contiguous().strides().vec();
    handle_->open().copy_(result);
  }

 private:
  aclTensor* handle_ = nullptr;
};

using Outs = std::vector<Out>;

// Numbers, bools: what comes is what the body sees.
template <typename T>
struct Argument {
  using Handle = T;
  using Kept = T;
  static Kept keep(Handle handle) { return handle; }
  static T open(const Kept& kept) { return kept; }
};

template <>
struct Argument<Tensor> {
  using Handle = const aclTensor*;
  using Kept = std::optional<aclTensor>;
  static Kept keep(Handle handle) { return handle == nullptr ? Kept() : Kept(*handle); }
  static Tensor open(const Kept& kept) { return kept ? kept->open() : Tensor(); }
};

template <>
struct Argument<Out> {
  using Handle = aclTensor*;
  using Kept = aclTensor*;
  static Kept keep(Handle handle) { return handle; }
  static Out open(const Kept& kept) { return kept == nullptr ? Out() : Out(kept); }
};

template <>
struct Argument<Tensors> {
  using Handle = const aclTensorList*;
  using Kept = std::vector<std::optional<aclTensor>>;
  static Kept keep(Handle handle) {
    Kept kept;
    if (handle == nullptr) return kept;
    for (const aclTensor* tensor : handle->elements)
      kept.push_back(Argument<Tensor>::keep(tensor));
    return kept;
  }
  static Tensors open(const Kept& kept) {
    Tensors tensors;
    for (const auto& one : kept) tensors.push_back(Argument<Tensor>::open(one));
    return tensors;
  }
};

template <>
struct Argument<Outs> {
  using Handle = const aclTensorList*;
  using Kept = std::vector<const aclTensor*>;
  static Kept keep(Handle handle) { return handle == nullptr ? Kept() : handle->elements; }
  static Outs open(const Kept& kept) {
    Outs outs;
    for (const aclTensor* one : kept)
      outs.push_back(Argument<Out>::open(const_cast<aclTensor*>(one)));
    return outs;
  }
};

template <>
struct Argument<Scalar> {
  using Handle = const aclScalar*;
  using Kept = Scalar;
  static Kept keep(Handle handle) {
    TORCH_CHECK(handle != nullptr, "a scalar is missing");
    return handle->value;
  }
  static Scalar open(const Kept& kept) { return kept; }
};

template <>
struct Argument<OptionalScalar> {
  using Handle = const aclScalar*;
  using Kept = OptionalScalar;
  static Kept keep(Handle handle) { return handle == nullptr ? Kept() : Kept(handle->value); }
  static OptionalScalar open(const Kept& kept) { return kept; }
};

template <>
struct Argument<Scalars> {
  using Handle = const aclScalarList*;
  using Kept = Scalars;
  static Kept keep(Handle handle) {
    Kept kept;
    for (const aclScalar* scalar : handle->elements) kept.push_back(scalar->value);
    return kept;
  }
  static Scalars open(const Kept& kept) { return kept; }
};

template <>
struct Argument<Ints> {
  using Handle = const aclIntArray*;
  using Kept = Ints;
  static Kept keep(Handle handle) { return handle == nullptr ? Kept() : handle->values; }
  static Ints open(const Kept& kept) { return kept; }
};

template <>
struct Argument<OptionalInts> {
  using Handle = const aclIntArray*;
  using Kept = OptionalInts;
  static Kept keep(Handle handle) { return handle == nullptr ? Kept() : Kept(handle->values); }
  static OptionalInts open(const Kept& kept) { return kept; }
};

template <>
struct Argument<std::vector<uint8_t>> {
  using Handle = const aclBoolArray*;
  using Kept = std::vector<uint8_t>;
  static Kept keep(Handle handle) { return handle == nullptr ? Kept() : handle->values; }
  static Kept open(const Kept& kept) { return kept; }
};

template <>
struct Argument<DType> {
  using Handle = int;
  using Kept = DType;
  static Kept keep(Handle handle) { return torch_type(handle); }
  static DType open(const Kept& kept) { return kept; }
};

// A local array of the caller: it is gone when the operator runs.
template <>
struct Argument<std::string> {
  using Handle = const char*;
  using Kept = std::string;
  static Kept keep(Handle handle) { return handle == nullptr ? Kept() : Kept(handle); }
  static std::string open(const Kept& kept) { return kept; }
};

}  // namespace sim
