// Names of operators, and where each is counted in the page of this process.
//
// Shared state: OpTable, the process-wide set of operators seen.
//   Writers: any thread, at the first sight of an operator, under one mutex.
//   Readers: every counting thread, without a lock. Records are published with release, read with
//   acquire, never moved and never freed.
// On fork: records stay; what they remember of the page is void (its generation changed).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "page_layout.h"

namespace nfe {

// One operator, by its full overload name.
struct OpRecord {
  const void* key = nullptr;  // address that stands for the operator; may be used again later
  std::string name;           // "aten::fmax"
  std::string overload;       // "out"; empty: none
  bool has_cpu_kernel = false;
  // Bit i: argument i is written by the operator; result i is a new tensor. Operators of more
  // than 64 arguments do not exist in PyTorch; later bits count as 0.
  std::uint64_t written_arguments = 0;
  std::uint64_t new_results = 0;
  std::atomic<std::uint32_t> refused_by{0};  // policy.h
  std::atomic<std::uint8_t> role{0};         // copy_context.h
  bool listed = false;                       // in the product's table of explicit kernels

  std::string full_name() const { return overload.empty() ? name : name + "." + overload; }

  // Memory of slot_for(): generation (32 bits), then npu + 1 (16), then slot index (16).
  static constexpr std::size_t kRememberedNpus = 16;
  std::array<std::array<std::atomic<std::uint64_t>, kRememberedNpus>, kKinds> remembered{};
  std::atomic<std::uint32_t> overflowed_in{0};  // generation in which it was counted as overflow
  std::atomic<std::uint32_t> seen_in{0};        // generation in which its first event was reported
  std::atomic<std::uint64_t> looks{0};          // first_sight.h
};

class OpTable {
 public:
  struct Watched {
    std::uint64_t with_cpu_kernel = 0;
    std::uint64_t without_cpu_kernel = 0;
  };

  static OpTable& instance();

  // The record of an operator, or null when it was never added. `key` is the address that stands
  // for it; the names guard against an address that was used again.
  OpRecord* find(const void* key, std::string_view name, std::string_view overload) noexcept {
    for (std::size_t step = 0; step < kProbes; ++step) {
      OpRecord* record = entry(key, step).load(std::memory_order_acquire);
      if (record == nullptr) return nullptr;
      if (record->key == key && record->name == name && record->overload == overload) return record;
    }
    return nullptr;
  }

  // Adds what find() did not find. Fields other than the key and names come from `fill`, before
  // the record is published. Returns a shared record named __other__ when the table is full.
  template <typename Fill>
  OpRecord* add(const void* key, std::string_view name, std::string_view overload, Fill fill) {
    auto* record = new OpRecord;
    record->key = key;
    record->name = name;
    record->overload = overload;
    fill(*record);
    return publish(record);
  }

  // Calls `visit(record)` for every operator seen so far.
  template <typename Visit>
  void for_each(Visit visit) {
    for (std::atomic<OpRecord*>& entry : entries_) {
      OpRecord* const record = entry.load(std::memory_order_acquire);
      if (record != nullptr) visit(*record);
    }
  }

  // The slot to count in; never null. Slots that do not fit are those of op __other__.
  Slot* slot_for(Page* page, std::uint32_t generation, OpRecord& record, Kind kind,
                 std::uint32_t npu) noexcept {
    if (npu < OpRecord::kRememberedNpus) {
      const std::uint64_t remembered =
          record.remembered[static_cast<std::size_t>(kind)][npu].load(std::memory_order_relaxed);
      if (remembered >> 32 == generation) return &page->slots[remembered & 0xFFFF];
    }
    return find_or_add_slot(page, generation, record, kind, npu);
  }

  // Counts a wait for a value by operator and NPU; the last row is that of op __other__.
  void count_sync(Page& page, const OpRecord& record, std::uint32_t npu) noexcept;

  // Operators known to end in the fallback: those found when arming, and each that is added later.
  void forget_watched();
  void watch(const void* key, bool has_cpu_kernel);
  Watched watched() const noexcept;

  // Only for the fork handler.
  void in_forked_child() noexcept;

 private:
  static constexpr std::size_t kEntries = 1u << 14;
  static constexpr std::size_t kProbes = 64;

  OpTable();
  std::atomic<OpRecord*>& entry(const void* key, std::size_t step) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(key);
    const std::size_t hash = static_cast<std::size_t>((address >> 4) * 0x9E3779B97F4A7C15ull >> 50);
    return entries_[(hash + step) % kEntries];
  }
  OpRecord* publish(OpRecord* record);
  void watch_locked(const void* key, bool has_cpu_kernel);
  Slot* find_or_add_slot(Page* page, std::uint32_t generation, OpRecord& record, Kind kind,
                         std::uint32_t npu) noexcept;

  std::array<std::atomic<OpRecord*>, kEntries> entries_{};
  OpRecord other_;
  std::unordered_set<const void*> watched_keys_;  // under the mutex
  std::atomic<std::uint64_t> watched_with_cpu_kernel_{0};
  std::atomic<std::uint64_t> watched_without_cpu_kernel_{0};
};

}  // namespace nfe
