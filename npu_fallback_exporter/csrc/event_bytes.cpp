#include "event_bytes.h"

namespace nfe {
namespace {

constexpr std::size_t kBits = 64;

bool bit(std::uint64_t bits, std::size_t index) {
  return index < kBits && ((bits >> index) & 1) != 0;
}

bool on_device(const at::Tensor& tensor) { return tensor.defined() && tensor.is_privateuseone(); }

std::uint64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size();
}

// Calls `visit(tensor)` for every device tensor in `value`.
template <typename Visit>
void for_each_device_tensor(const c10::IValue& value, Visit visit) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (on_device(tensor)) visit(tensor);
  } else if (value.isTensorList() || value.isOptionalTensorList()) {
    for (const c10::IValue& item : value.toListRef()) {
      if (item.isTensor() && on_device(item.toTensor())) visit(item.toTensor());
    }
  }
}

}  // namespace

EventBytes::EventBytes(const OpRecord& record, std::size_t arguments,
                       const torch::jit::Stack& stack) {
  const std::size_t begin = stack.size() - arguments;
  for (std::size_t index = 0; index < arguments; ++index) {
    const c10::IValue& value = stack[begin + index];
    if (value.isDevice()) {
      if (value.toDevice().is_privateuseone()) requested_npu_ = value.toDevice().index();
      continue;
    }
    const bool written = bit(record.written_arguments, index);
    for_each_device_tensor(value, [&](const at::Tensor& tensor) {
      note_device(tensor.device().index());
      to_host_ += bytes_of(tensor);
      if (written) written_.push_back(tensor);
    });
  }
}

std::array<std::uint64_t, kDirections> EventBytes::finish(const OpRecord& record,
                                                          std::size_t results,
                                                          const torch::jit::Stack& stack) {
  std::uint64_t to_device = 0;
  // Their size counts after the call: an out= tensor may have been resized.
  for (const at::Tensor& tensor : written_) to_device += bytes_of(tensor);
  const std::size_t begin = stack.size() - results;
  for (std::size_t index = 0; index < results; ++index) {
    if (!bit(record.new_results, index)) continue;
    for_each_device_tensor(stack[begin + index], [&](const at::Tensor& tensor) {
      note_device(tensor.device().index());
      to_device += bytes_of(tensor);
    });
  }
  note_device(requested_npu_);
  return {to_host_, to_device};
}

std::uint64_t written_arguments(const c10::FunctionSchema& schema) {
  std::uint64_t bits = 0;
  const auto& arguments = schema.arguments();
  for (std::size_t index = 0; index < arguments.size() && index < kBits; ++index) {
    const c10::AliasInfo* alias = arguments[index].alias_info();
    if (alias != nullptr && alias->isWrite()) bits |= 1ull << index;
  }
  return bits;
}

std::uint64_t new_results(const c10::FunctionSchema& schema) {
  std::uint64_t bits = 0;
  const auto& results = schema.returns();
  for (std::size_t index = 0; index < results.size() && index < kBits; ++index) {
    const c10::AliasInfo* alias = results[index].alias_info();
    if (alias == nullptr || !alias->isWrite()) bits |= 1ull << index;
  }
  return bits;
}

}  // namespace nfe
