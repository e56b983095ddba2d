// Standing before the NPU kernels of the product's table, for what nested operators and copies do
// not show: with which arguments one was called, and that torch_npu's own switch refused it.
//
// These kernels are called boxed while the tracker is armed, which costs them less than a
// microsecond; every other operator is untouched.
//
// Shared state: the kernels that were there, found by operator. Written by exchange(), which the
// caller serialises, before ours can be called; read by every thread that calls ours; never freed,
// since a thread may still be inside ours after restore(). On fork: nothing to do.
#pragma once

#include "dispatcher_access.h"

namespace nfe {

class ListedKernels {
 public:
  static void exchange(DispatcherLock& dispatcher);
  static void restore(DispatcherLock& dispatcher);
};

}  // namespace nfe
