// Which operators the calling thread is inside of, outermost first.
//
// Fed by PyTorch's RecordFunction: one callback pair around every operator that goes through the
// dispatcher. Frames that are no operators ("Torch-Compiled Region", "aclnn...") do not count, so
// that eager, compiled, scripted and autograd-thread runs look alike.
//
// Owned by its thread; nothing is shared. On fork the child's thread keeps the frames it is in.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <cstdint>
#include <vector>

#include "op_table.h"
#include "page_layout.h"

namespace nfe {

// Copies between host and device that happened directly in one operator.
struct CopyTally {
  std::uint64_t begin_ns = 0;           // of the first copy
  std::uint64_t first_to_host_end_ns = 0;
  std::array<std::uint64_t, kDirections> calls{};  // those of 0 elements too
  std::array<std::uint64_t, kDirections> bytes{};
  // Transfers only; sizes as in Header::transfer_size_buckets.
  std::array<std::array<std::uint32_t, kSizeBuckets>, kDirections> sizes{};
};

struct OpFrame {
  const c10::FunctionSchema* schema = nullptr;
  std::uint64_t nested_event_ns = 0;  // of events inside this frame
  bool is_fallback = false;           // the dispatcher took the fallback for it
  bool computed_on_host = false;      // an operator of the same name ran inside after a copy
  bool has_copies = false;            // `copies` means something
  std::uint32_t npu = 0;              // of the first copy
  CopyTally copies;
  std::vector<c10::IValue> arguments;  // listed_kernels.h; empty: not known
};

class OpStack {
 public:
  static constexpr std::uint32_t kFrames = 64;  // deeper ones are counted but not remembered

  static OpStack& of_this_thread() noexcept;

  void push(const c10::FunctionSchema* schema) noexcept {
    if (++depth_ > kFrames) return;
    OpFrame& frame = frames_[depth_ - 1];
    frame.schema = schema;
    frame.nested_event_ns = 0;
    frame.is_fallback = frame.computed_on_host = frame.has_copies = false;
  }
  void pop() noexcept { --depth_; }

  std::uint32_t depth() const noexcept { return depth_; }
  // Frame at a depth from 1 to min(depth(), kFrames).
  OpFrame& at(std::uint32_t depth) noexcept { return frames_[depth - 1]; }
  // The innermost frame that is remembered; null outside of all operators.
  OpFrame* top() noexcept {
    return depth_ == 0 ? nullptr : &frames_[(depth_ < kFrames ? depth_ : kFrames) - 1];
  }

  // Which of the page's shards this thread adds to.
  std::uint32_t shard = 0;

  // Copies between host and device that aten::copy_ has made on this thread.
  std::uint64_t copies = 0;

  // Frames with has_copies below the top: lets the common case skip looking for one.
  std::uint32_t with_copies = 0;

 private:
  std::uint32_t depth_ = 0;
  std::array<OpFrame, kFrames> frames_;
};

}  // namespace nfe
