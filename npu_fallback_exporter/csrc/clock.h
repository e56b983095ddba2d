// The clock of all durations and armed spans: CLOCK_MONOTONIC, shared by the containers of a host.
#pragma once

#include <cstdint>
#include <ctime>

namespace nfe {

inline std::uint64_t read_clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}

inline std::uint64_t monotonic_ns() { return read_clock_ns(CLOCK_MONOTONIC); }
inline std::uint64_t unix_ns() { return read_clock_ns(CLOCK_REALTIME); }

}  // namespace nfe
