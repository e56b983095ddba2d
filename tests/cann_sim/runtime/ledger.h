// Counts what crosses the runtime's boundary. Every counter is a relaxed atomic:
// the reader compares two moments at which the process is quiet.
#pragma once

#include <atomic>
#include <cstdint>

#include "acl.h"

namespace sim {

// One counter per function name, linked at first use, so that a reader can list them all.
struct NamedCounter {
  explicit NamedCounter(const char* counted);
  const char* name;
  std::atomic<uint64_t> count{0};
  NamedCounter* next;
};

// Counts the call. False in a process that was forked after aclInit: a device context
// does not survive a fork, so every call has to fail there.
bool enter(NamedCounter& counter);

void record_copy(CopyKind kind, uint64_t bytes);

}  // namespace sim

// First line of every runtime function that returns an aclError.
#define SIM_ENTER()                                \
  static sim::NamedCounter counter(__func__);      \
  if (!sim::enter(counter)) return kNoContext

// The same for functions that must work in a forked child, or return something else.
#define SIM_COUNT()                                \
  static sim::NamedCounter counter(__func__);      \
  (void)sim::enter(counter)
