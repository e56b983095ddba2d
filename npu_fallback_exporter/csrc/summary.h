// A line in the log, at most every minute, while the rate of events changes.
//
// No thread does this: events look at the clock, and the first one after a minute tells.
// Shared state: when the next look is due (relaxed); what was there at the last one, under a mutex
// that nobody waits for. On fork: the child begins anew.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "page_layout.h"

namespace nfe {

class Summary {
 public:
  static constexpr std::uint64_t kIntervalNs = 60'000'000'000;

  // At every event. The line, when one is due.
  static std::optional<std::string> at_event(const Page& page, std::uint64_t now_ns) {
    if (now_ns < due_ns_.load(std::memory_order_relaxed)) return std::nullopt;
    return look(page, now_ns);
  }

  // Only for the fork handler.
  static void in_forked_child() noexcept;

 private:
  static std::optional<std::string> look(const Page& page, std::uint64_t now_ns);
  inline static std::atomic<std::uint64_t> due_ns_{0};
};

}  // namespace nfe
