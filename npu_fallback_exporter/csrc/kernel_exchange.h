// One operator's own kernel, exchanged for ours and put back.
//
// Shared state: the kernel that was there. Written under the dispatcher's registration lock, before
// ours can be called; read by every thread that calls ours; never freed, since a thread may still
// be inside ours after restore(). On fork: nothing to do.
#pragma once

#include <atomic>
#include <optional>

#include "dispatcher_access.h"

namespace nfe {

class KernelExchange {
 public:
  // Remembers the operator's kernel for `key`, for previous(). False: the operator is not defined,
  // or has no kernel of its own there.
  bool find(DispatcherLock& dispatcher, const c10::OperatorName& name, c10::DispatchKey key);

  // Puts `ours`, made from plain functions, in its place. Other threads may be calling it.
  void put(DispatcherLock& dispatcher, const c10::KernelFunction& ours);

  // Both.
  void exchange(DispatcherLock& dispatcher, const c10::OperatorName& name, c10::DispatchKey key,
                const c10::KernelFunction& ours) {
    if (find(dispatcher, name, key)) put(dispatcher, ours);
  }

  // Puts back what was there, unless its registration is gone.
  void restore(DispatcherLock& dispatcher);

  const c10::KernelFunction& previous() const {
    return *previous_.load(std::memory_order_acquire);
  }
  const c10::OperatorHandle& op() const { return *op_; }

 private:
  std::optional<c10::OperatorHandle> op_;
  c10::DispatchKey key_ = c10::DispatchKey::Undefined;
  c10::impl::AnnotatedKernel* place_ = nullptr;
  std::atomic<const c10::KernelFunction*> previous_{nullptr};
};

}  // namespace nfe
