#include "kernel_exchange.h"

#include <utility>

namespace nfe {

bool KernelExchange::exchange(DispatcherLock& dispatcher, const c10::OperatorName& name,
                              c10::DispatchKey key, c10::KernelFunction ours) {
  c10::impl::OperatorEntry* const entry = dispatcher.find(name);
  c10::impl::AnnotatedKernel* const place =
      entry == nullptr ? nullptr : dispatcher.kernel(*entry, key);
  if (place == nullptr) return false;
  op_ = c10::Dispatcher::singleton().findOp(name);
  key_ = key;
  place_ = place;
  previous_ = new c10::KernelFunction(place->kernel);
  place->kernel = std::move(ours);
  dispatcher.update(*entry, key);
  return true;
}

void KernelExchange::restore(DispatcherLock& dispatcher) {
  if (place_ == nullptr) return;
  c10::impl::OperatorEntry* const entry = dispatcher.find(op_->operator_name());
  if (entry != nullptr && dispatcher.is_registered(*entry, key_, place_)) {
    place_->kernel = *previous_;
    dispatcher.update(*entry, key_);
  }
  place_ = nullptr;
}

}  // namespace nfe
