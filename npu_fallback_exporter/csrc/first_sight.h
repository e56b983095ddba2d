// The first sights of an operator: one line in the log, and notes in the page.
//
// Where an operator is called from can only be known by looking. The first kMaxLooks events of an
// operator are looked at, until kMaxSites distinct call sites are known; later ones cost one load.
// Events that come while Python is too busy to answer count for kLooksTooLate looks.
//
// Shared state: the number of looks and sites of each operator (OpRecord::looks), relaxed.
// On fork: the child looks anew, into its own page (looks are kept by generation).
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <cstdint>

#include "argument_text.h"
#include "counters.h"
#include "op_table.h"
#include "page_layout.h"

namespace nfe {

class FirstSight {
 public:
  static constexpr std::uint32_t kMaxLooks = 64;
  static constexpr std::uint32_t kMaxSites = 5;
  static constexpr std::uint32_t kLooksTooLate = 16;

  // Before the operator: decides whether this event is looked at, and reads the arguments if so.
  // A stack that holds fewer values than the operator has arguments tells nothing of them.
  FirstSight(OpRecord& record, Kind kind, std::uint32_t generation,
             const c10::FunctionSchema& schema, const torch::jit::Stack& stack) noexcept {
    if (!looks_at(record, generation)) return;
    begin(record, kind, generation, schema, stack);
  }

  // Whether the next event of `record` is looked at.
  static bool looks_at(const OpRecord& record, std::uint32_t generation) noexcept {
    const std::uint64_t looks = record.looks.load(std::memory_order_relaxed);
    return (looks & kDone) == 0 || looks >> 32 != generation;
  }

  // After it. `slot` is where the event was counted, `reason` why it ran on the host.
  void tell(Slot& slot, std::uint32_t npu, const EventCost& cost, const char* reason) noexcept {
    if (record_ != nullptr) tell_looked_at(slot, npu, cost, reason);
  }

  // False: no Python frames and no arguments are recorded (NPU_FALLBACK_CALL_SITES=0).
  static void record_call_sites(bool record) noexcept;

  // Looks at the next events of every operator again, as at its first ones; tells none again.
  static void look_again() noexcept;

 private:
  static constexpr std::uint64_t kDone = 1ull << 31;  // no further looks

  void begin(OpRecord& record, Kind kind, std::uint32_t generation,
             const c10::FunctionSchema& schema, const torch::jit::Stack& stack) noexcept;
  void tell_looked_at(Slot& slot, std::uint32_t npu, const EventCost& cost,
                      const char* reason) noexcept;
  void count_sites(std::uint32_t looks, std::uint32_t sites) noexcept;

  OpRecord* record_ = nullptr;  // null: not looked at
  Kind kind_ = Kind::kDispatcher;
  std::uint32_t generation_ = 0;
  bool is_first_ = false;
  ArgumentText arguments_;
};

}  // namespace nfe
