#include "kernel_exchange.h"

namespace nfe {
namespace {

// `kernel` with the functions of `ours`. What it keeps of its own, the functor, is handed to our
// functions, which do not look at it. So a thread that reads a table entry while it changes finds
// in each of its words either the old function or ours, and calls it with what belongs to it.
c10::KernelFunction with_functions_of(const c10::KernelFunction& ours, c10::KernelFunction kernel) {
  (kernel.*member(BoxedKernelOf{})).*member(BoxedFunctionOf{}) =
      (ours.*member(BoxedKernelOf{})).*member(BoxedFunctionOf{});
  kernel.*member(UnboxedFunctionOf{}) = ours.*member(UnboxedFunctionOf{});
  kernel.*member(SymUnboxedFunctionOf{}) = ours.*member(SymUnboxedFunctionOf{});
  return kernel;
}

}  // namespace

bool KernelExchange::find(DispatcherLock& dispatcher, const c10::OperatorName& name,
                          c10::DispatchKey key) {
  c10::impl::OperatorEntry* const entry = dispatcher.find(name);
  place_ = entry == nullptr ? nullptr : dispatcher.kernel(*entry, key);
  if (place_ == nullptr) return false;
  op_ = c10::Dispatcher::singleton().findOp(name);
  key_ = key;
  previous_.store(new c10::KernelFunction(place_->kernel), std::memory_order_release);
  return true;
}

void KernelExchange::put(DispatcherLock& dispatcher, const c10::KernelFunction& ours) {
  place_->kernel = with_functions_of(ours, place_->kernel);
  dispatcher.update(*dispatcher.find(op_->operator_name()), key_);
}

void KernelExchange::restore(DispatcherLock& dispatcher) {
  if (place_ == nullptr) return;
  c10::impl::OperatorEntry* const entry = dispatcher.find(op_->operator_name());
  if (entry != nullptr && dispatcher.is_registered(*entry, key_, place_)) {
    place_->kernel = previous();
    dispatcher.update(*entry, key_);
  }
  place_ = nullptr;
}

}  // namespace nfe
