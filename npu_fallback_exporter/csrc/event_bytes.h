// What a dispatcher fallback copies, read off an operator's arguments and results.
//
// Source of the rules: cpu_fallback in PyTorch (aten/src/ATen/native/CPUFallback.cpp). Every device
// tensor among the arguments goes to the host, inside lists and optionals too, whether or not the
// operator reads it; arguments that the operator writes, and results that are new tensors, come
// back. A copy moves numel x itemsize bytes: a view is made contiguous on its own side first.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <cstdint>

#include "op_table.h"
#include "page_layout.h"

namespace nfe {

class EventBytes {
 public:
  // Reads the arguments on top of `stack`, before the operator runs.
  EventBytes(const OpRecord& record, std::size_t arguments, const torch::jit::Stack& stack);

  // Reads the results on top of `stack`, after it ran. Bytes by direction.
  std::array<std::uint64_t, kDirections> finish(const OpRecord& record, std::size_t results,
                                                const torch::jit::Stack& stack);

  // Logical index of the device that the event belongs to: that of the first device tensor
  // argument, else of the first result or device argument; 0 when nothing names one.
  std::uint32_t npu() const { return npu_ < 0 ? 0 : static_cast<std::uint32_t>(npu_); }

 private:
  void note_device(c10::DeviceIndex index) {
    if (npu_ < 0) npu_ = index;
  }

  c10::DeviceIndex npu_ = -1;
  c10::DeviceIndex requested_npu_ = -1;
  std::uint64_t to_host_ = 0;
  c10::SmallVector<at::Tensor, 4> written_;
};

// Bit i of the result: argument i is written; result i is a new tensor.
std::uint64_t written_arguments(const c10::FunctionSchema& schema);
std::uint64_t new_results(const c10::FunctionSchema& schema);

}  // namespace nfe
