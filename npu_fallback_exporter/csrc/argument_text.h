// An operator's arguments as text: JSON that `repro` can build them from, and words for a log line.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <string>

namespace nfe {

struct ArgumentText {
  std::string json;   // {"arguments":[{"name":…,"value":…},…]}; empty: too long
  std::string words;  // "self float32[2, 3], other float32[2, 3]": the tensors alone
};

// Reads the top `arguments` values of `stack`, before the operator runs.
//
// Values: numbers, strings, true, false and null as they are; otherwise an object with one of
// "tensor" (sizes; with dtype, device and, where they say more, strides or layout), "list" (its
// first items; "more": how many are left out), "dtype", "device", "layout", "memory_format",
// "complex", "float" (inf, -inf, nan), "generator", "other" (what cannot be told).
ArgumentText describe_arguments(const c10::FunctionSchema& schema, std::size_t arguments,
                                const torch::jit::Stack& stack);

}  // namespace nfe
