// The parts of PyTorch's dispatcher that a backend fallback is made of.
//
// PyTorch offers no public way to put a kernel around a backend fallback: it refuses a second one
// for the same key, and a kernel per operator would make every operator look as if it had an NPU
// kernel of its own (which torch.export, FakeTensor, opcheck and the inductor lists ask), would
// miss operators defined later, and could pre-empt a kernel that is about to be registered.
// So the fallback itself is exchanged, under the dispatcher's own lock, with its own function
// for updating the operators' tables. Members that are private are named through explicit
// instantiation, for which the language waives access checks; where a PyTorch version names them
// otherwise, the hook does not compile for it, rather than misbehave.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <mutex>

namespace nfe {

template <auto Pointer, typename Name>
struct Expose {
  friend constexpr auto member(Name) { return Pointer; }
};

// `object.*member(name{})` is then the private member that `pointer` points to.
#define NFE_EXPOSE(name, pointer)          \
  struct name {                            \
    friend constexpr auto member(name);    \
  };                                       \
  template struct Expose<pointer, name>

NFE_EXPOSE(DispatcherFallbacks, &c10::Dispatcher::backendFallbackKernels_);
NFE_EXPOSE(DispatcherOperators, &c10::Dispatcher::operators_);
NFE_EXPOSE(DispatcherGuard, &c10::Dispatcher::guard_);

NFE_EXPOSE(HandleDefinition, &c10::OperatorHandle::operatorDef_);

NFE_EXPOSE(EntryKernels, &c10::impl::OperatorEntry::kernels_);

// What a kernel is called through, boxed and unboxed.
NFE_EXPOSE(BoxedKernelOf, &c10::KernelFunction::boxed_kernel_func_);
NFE_EXPOSE(BoxedFunctionOf, &c10::BoxedKernel::boxed_kernel_func_);
NFE_EXPOSE(UnboxedFunctionOf, &c10::KernelFunction::unboxed_kernel_func_);
NFE_EXPOSE(SymUnboxedFunctionOf, &c10::KernelFunction::sym_unboxed_kernel_func_);

// Holds the dispatcher's lock for registrations. Never run an operator or Python under it.
class DispatcherLock {
 public:
  DispatcherLock()
      : dispatcher_(c10::Dispatcher::singleton()),
        lock_((dispatcher_.*member(DispatcherGuard{}))->mutex) {}

  c10::impl::AnnotatedKernel& fallback(c10::DispatchKey key) {
    const int index = c10::getDispatchTableIndexForDispatchKey(key);
    return (dispatcher_.*member(DispatcherFallbacks{}))[static_cast<std::size_t>(index)];
  }

  // Calls `visit(entry)` for every operator whose kernel for `key`, a backend key, is the backend
  // fallback: none of its own and none of the composite kinds that come before the fallback.
  template <typename Visit>
  void for_each_falling_back(c10::DispatchKey key, Visit visit) {
    using c10::DispatchKey;
    for (auto& definition : dispatcher_.*member(DispatcherOperators{})) {
      c10::impl::OperatorEntry& entry = definition.op;
      const bool has_kernel =
          entry.hasKernelForDispatchKey(key) ||
          entry.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional) ||
          entry.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
          entry.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
      if (!has_kernel) visit(entry);
    }
  }

  // The operator of that name; null when none is defined.
  c10::impl::OperatorEntry* find(const c10::OperatorName& name) {
    const auto handle = dispatcher_.findSchema(name);
    return handle.has_value() ? &((*handle).*member(HandleDefinition{}))->op : nullptr;
  }

  // The operator's own kernel for `key`, the one that is in force; null when it has none.
  c10::impl::AnnotatedKernel* kernel(c10::impl::OperatorEntry& entry, c10::DispatchKey key) {
    auto& kernels = entry.*member(EntryKernels{});
    const auto found = kernels.find(key);
    return found == kernels.end() || found->second.empty() ? nullptr : &found->second.front();
  }

  // Whether `kernel` is still one of the operator's kernels for `key`.
  bool is_registered(c10::impl::OperatorEntry& entry, c10::DispatchKey key,
                     const c10::impl::AnnotatedKernel* kernel) {
    auto& kernels = entry.*member(EntryKernels{});
    const auto found = kernels.find(key);
    if (found == kernels.end()) return false;
    for (const c10::impl::AnnotatedKernel& registered : found->second) {
      if (&registered == kernel) return true;
    }
    return false;
  }

  void update(c10::impl::OperatorEntry& entry, c10::DispatchKey key) {
    entry.updateFallback(dispatcher_, key);
  }

 private:
  c10::Dispatcher& dispatcher_;
  std::lock_guard<std::mutex> lock_;
};

}  // namespace nfe
