#include "ledger.h"

#include <pthread.h>

#include "device.h"

namespace {

// The order is what ledger.py reads.
struct Totals {
  std::atomic<uint64_t> bytes[4];
  std::atomic<uint64_t> calls[4];
  std::atomic<uint64_t> kernels;
  std::atomic<uint64_t> api_calls;
};

Totals totals;
std::atomic<sim::NamedCounter*> api_functions{nullptr};
std::atomic<bool> forked_after_init{false};

__attribute__((constructor)) void watch_forks() {
  pthread_atfork(nullptr, nullptr, [] {
    if (sim::initialised()) forked_after_init = true;
  });
}

}  // namespace

namespace sim {

NamedCounter::NamedCounter(const char* counted) : name(counted), next(api_functions.load()) {
  while (!api_functions.compare_exchange_weak(next, this)) {
  }
}

bool enter(NamedCounter& counter) {
  counter.count.fetch_add(1, std::memory_order_relaxed);
  totals.api_calls.fetch_add(1, std::memory_order_relaxed);
  return !forked_after_init.load(std::memory_order_relaxed);
}

void record_copy(CopyKind kind, uint64_t bytes) {
  const int slot = static_cast<int>(kind);
  totals.bytes[slot].fetch_add(bytes, std::memory_order_relaxed);
  totals.calls[slot].fetch_add(1, std::memory_order_relaxed);
}

}  // namespace sim

SIM_EXPORT const void* cann_sim_totals() { return &totals; }

// Called by libopapi.so once per kernel; false tells it to refuse, as after a fork.
SIM_EXPORT bool cann_sim_kernel_starts() {
  totals.kernels.fetch_add(1, std::memory_order_relaxed);
  return !forked_after_init.load(std::memory_order_relaxed);
}

SIM_EXPORT const void* cann_sim_first_function() { return api_functions.load(); }
SIM_EXPORT const void* cann_sim_next_function(const sim::NamedCounter* at) { return at->next; }
SIM_EXPORT const char* cann_sim_function_name(const sim::NamedCounter* at) { return at->name; }
SIM_EXPORT uint64_t cann_sim_function_calls(const sim::NamedCounter* at) { return at->count.load(); }
