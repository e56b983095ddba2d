#include "summary.h"

#include <array>
#include <cstdio>
#include <mutex>
#include <new>

namespace nfe {
namespace {

struct Last {
  std::mutex mutex;
  std::uint64_t at_ns = 0;  // 0: no look yet
  double told_rate = -1;    // events per second; below 0: none told yet
  std::array<std::uint64_t, kSlots> events{};
};

Last& last() {
  // Never destroyed: threads may count while static objects are torn down.
  static Last* const state = new Last;
  return *state;
}

// Rates that differ by less than a quarter are the same.
bool has_changed(double before, double now) {
  return before < 0 || now > before * 1.25 || now < before * 0.75;
}

std::string line_of(const Page& page, std::uint64_t events, std::size_t most, std::uint64_t of_most,
                    double seconds, double before) {
  const std::uint64_t row = page.slots[most].key.load(std::memory_order_relaxed) >> 16 & 0xFFFF;
  const OpRow& op = page.ops[row < kMaxOps ? row : 0];
  const auto name_bytes = static_cast<int>(op.name_bytes.load(std::memory_order_acquire));
  char told_before[40] = "";
  if (before >= 0) std::snprintf(told_before, sizeof told_before, ", before %.3g", before);
  char text[512];
  std::snprintf(text, sizeof text,
                "npu-fallback-exporter: %llu operator calls ran on the CPU in the last %.0f s "
                "(%.3g per second%s), most of them %.*s (%llu)",
                static_cast<unsigned long long>(events), seconds,
                static_cast<double>(events) / seconds, told_before, name_bytes, op.name,
                static_cast<unsigned long long>(of_most));
  return text;
}

}  // namespace

void Summary::in_forked_child() noexcept {
  Last& state = last();
  new (&state.mutex) std::mutex;
  state.at_ns = 0;
  state.told_rate = -1;
  state.events.fill(0);
  due_ns_.store(0, std::memory_order_relaxed);
}

std::optional<std::string> Summary::look(const Page& page, std::uint64_t now_ns) {
  Last& state = last();
  const std::unique_lock<std::mutex> lock(state.mutex, std::try_to_lock);
  if (!lock.owns_lock() || now_ns < due_ns_.load(std::memory_order_relaxed)) return std::nullopt;
  due_ns_.store(now_ns + kIntervalNs, std::memory_order_relaxed);
  const double seconds = static_cast<double>(now_ns - state.at_ns) / 1e9;
  const bool is_first_look = state.at_ns == 0;
  state.at_ns = now_ns;
  std::uint64_t all = 0;
  std::uint64_t of_most = 0;
  std::size_t most = 0;
  for (std::size_t index = 0; index < kSlots; ++index) {
    const std::uint64_t events = page.slots[index].events.load(std::memory_order_relaxed);
    const std::uint64_t grown = events - state.events[index];
    state.events[index] = events;
    all += grown;
    if (grown > of_most) {
      of_most = grown;
      most = index;
    }
  }
  if (is_first_look || all == 0) return std::nullopt;
  const double rate = static_cast<double>(all) / seconds;
  if (!has_changed(state.told_rate, rate)) return std::nullopt;
  std::string line = line_of(page, all, most, of_most, seconds, state.told_rate);
  state.told_rate = rate;
  return line;
}

}  // namespace nfe
