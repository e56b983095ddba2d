// Adding to a page: relaxed atomic adds, no lock, no allocation, any thread.
#pragma once

#include <array>
#include <cstdint>

#include "page_layout.h"

namespace nfe {

// What one event cost.
struct EventCost {
  std::array<std::uint64_t, kDirections> bytes{};
  std::uint64_t duration_ns = 0;
  std::uint64_t host_ns = 0;  // without the first copy to the host
  bool host_is_measured = false;
};

inline void add(Counter& counter, std::uint64_t amount) noexcept {
  counter.fetch_add(amount, std::memory_order_relaxed);
}

inline std::size_t duration_bucket(std::uint64_t duration_ns) noexcept {
  std::size_t bucket = 0;
  while (bucket < kDurationBuckets - 1 && duration_ns > kDurationBoundsNs[bucket]) ++bucket;
  return bucket;
}

inline void count_event(Slot& slot, const EventCost& cost) noexcept {
  add(slot.events, 1);
  for (std::size_t direction = 0; direction < kDirections; ++direction) {
    if (cost.bytes[direction] != 0) add(slot.bytes[direction], cost.bytes[direction]);
  }
  if (cost.host_is_measured) {
    add(slot.host_ns, cost.host_ns);
    add(slot.host_ns_events, 1);
  }
  add(slot.duration_ns, cost.duration_ns);
  add(slot.duration_buckets[duration_bucket(cost.duration_ns)], 1);
}

inline void count_blocked(Slot& slot) noexcept { add(slot.blocked, 1); }
inline void count_error(Slot& slot) noexcept { add(slot.errors, 1); }

}  // namespace nfe
