// Refusing a fallback: counting it as blocked, and the error that says how to go on.
#pragma once

#include <cstdint>

#include "op_table.h"

namespace nfe {

// Each returns when the operator may fall back, and throws a RuntimeError (in Python's terms)
// when it may not.
void refuse_dispatcher_fallback(OpRecord& record, std::uint32_t npu);
void refuse_explicit_kernel(OpRecord& record, std::uint32_t npu);

// Counts a refusal that was torch_npu's own.
void count_blocked_explicit_kernel(OpRecord& record, std::uint32_t npu) noexcept;

}  // namespace nfe
