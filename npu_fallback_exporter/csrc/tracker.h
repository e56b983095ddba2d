// Watching every operator and every copy of this process: the half of the hook that Track::kAll
// adds. Explicit kernels, transfers by cause, syncs, operators, device allocations, and the host
// time of dispatcher fallbacks come from here.
//
// Shared state: exchanged kernels (kernel_exchange.h) and one RecordFunction callback.
// Written by arm() and disarm(), which the caller serialises. On fork: nothing to do.
#pragma once

namespace nfe {

class Tracker {
 public:
  static void arm();
  static void disarm();
};

}  // namespace nfe
