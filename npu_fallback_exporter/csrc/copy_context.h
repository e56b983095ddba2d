// On whose behalf a copy between host and device happens, and what an operator's copies mean.
#pragma once

#include <ATen/core/operator_name.h>

#include <functional>

#include "op_stack.h"
#include "op_table.h"
#include "page_layout.h"

namespace nfe {

// What an operator's own NPU kernel says about the copies inside it.
enum class Role : std::uint8_t {
  kUnknown = 0,
  kPass,    // none of its own, or one that only moves tensors: the enclosing operator decides
  kVendor,  // registered by torch_npu or op-plugin
  kUser,    // registered by somebody else: what happens inside is the program's own doing
};

// The record of an operator in the stack, with its role known.
OpRecord& record_of_frame(const c10::FunctionSchema& schema);

// The frame that copies belong to, innermost first: one that fell back, or one with a kernel of
// torch_npu's. Null: the program asked for the copy itself.
OpFrame* owner_of_copies(OpStack& stack);

// One copy: `elements` of the device tensor's item size, or none.
struct Copy {
  Direction direction = Direction::kDeviceToHost;
  std::uint32_t npu = 0;
  std::uint64_t bytes = 0;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
};

// Adds a copy to its owner's tally, or, without an owner, to the transfers of cause user.
void note_copy(OpStack& stack, OpFrame* owner, const Copy& copy);

// Counts a transfer at once.
void count_transfer(Page& page, const Copy& copy, Cause cause) noexcept;

// Counts what a frame's tally holds under `cause`.
void count_tally(Page& page, const OpFrame& frame, Cause cause) noexcept;

// At the end of an operator that is no fallback: its copies are an event if its kernel is
// torch_npu's, tensors went to the host, were computed there and came back. Returns the duration
// of the event; 0: it was none.
std::uint64_t finish_operator(OpStack& stack, OpFrame& frame);

// Operators of the product's table, one full name per line. Call before arming.
void set_listed_operators(const char* names);

// Calls `visit(name)` for each of them.
void for_each_listed_operator(const std::function<void(const c10::OperatorName&)>& visit);

// Why an operator with an NPU kernel runs on the host.
inline constexpr char kExplicitReason[] = "its NPU kernel computes on the host here";

}  // namespace nfe
