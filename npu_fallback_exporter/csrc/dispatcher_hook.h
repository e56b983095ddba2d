// Counting the fallbacks of PyTorch's dispatcher: kind "dispatcher".
//
// Shared state: the fallback that was there before, and whether ours is in its place.
//   Writers: arm() and disarm(), under the dispatcher's registration lock.
//   Readers: every thread that takes a fallback. The previous kernel is published with release
//   before ours is in place, and is never freed: a thread may still be inside ours after disarm().
// On fork: nothing to do; the child is armed as its parent was.
#pragma once

#include <cstdint>

#include "op_table.h"

namespace nfe {

class DispatcherHook {
 public:
  // True when torch_npu's fallback, or ours in its place, is registered.
  static bool has_fallback();

  // Puts our kernel in the place of the backend fallback of the NPU's dispatch key; does nothing
  // when it is there already. False: no fallback is registered (torch_npu is not loaded).
  static bool arm();

  // Puts back what was there. Threads inside our kernel finish in it.
  static void disarm();

  static bool armed() noexcept;

  // Set while the tracker (tracker.h) sees the copies inside a fallback.
  static void set_tracked(bool tracked) noexcept;

  // Set when torch_npu's own switch refuses fallbacks in this process: its refusals then count as
  // blocked. Reads no text of its errors.
  static void set_vendor_refuses(bool refuses) noexcept;
  static bool vendor_refuses() noexcept;
};

}  // namespace nfe
