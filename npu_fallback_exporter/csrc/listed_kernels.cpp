#include "listed_kernels.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <atomic>
#include <exception>
#include <unordered_map>

#include "copy_context.h"
#include "dispatcher_hook.h"
#include "first_sight.h"
#include "kernel_exchange.h"
#include "op_stack.h"
#include "page_writer.h"
#include "refusal.h"

namespace nfe {
namespace {

using c10::DispatchKey;

// By the address of the operator's name, which stays where it is.
using Kernels = std::unordered_map<const c10::OperatorName*, KernelExchange>;

std::atomic<Kernels*> exchanged{nullptr};

// Keeps the arguments until the operator's end, when it is known whether it was an event.
void remember_arguments(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) noexcept {
  OpFrame* const frame = OpStack::of_this_thread().top();
  if (frame == nullptr || frame->schema != &schema) return;
  try {
    if (!FirstSight::looks_at(record_of_frame(schema), PageWriter::instance().generation())) return;
    frame->arguments.assign(stack.end() - static_cast<std::ptrdiff_t>(schema.arguments().size()),
                            stack.end());
  } catch (const std::exception&) {  // no memory: told without arguments
  }
}

// torch_npu's switch is looked at before anything is copied, so its refusal shows in no copy. Of
// the kernels that are not the dispatcher's fallback, only those of sparse CSR look at it.
void count_vendor_refusal(const c10::FunctionSchema& schema, c10::DispatchKeySet keys,
                          const torch::jit::Stack& stack) noexcept {
  if (!DispatcherHook::vendor_refuses()) return;
  if (keys.highestPriorityTypeId() != DispatchKey::SparseCsrPrivateUse1) return;
  const std::size_t arguments = schema.arguments().size();
  if (arguments == 0 || stack.size() < arguments) return;
  const c10::IValue& self = stack[stack.size() - arguments];
  if (!self.isTensor() || !self.toTensor().defined()) return;
  count_refusal(record_of_frame(schema), Kind::kExplicitKernel,
                static_cast<std::uint32_t>(self.toTensor().device().index()));
}

void watched(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const Kernels& kernels = *exchanged.load(std::memory_order_acquire);
  remember_arguments(op.schema(), *stack);
  try {
    kernels.at(&op.operator_name()).previous().callBoxed(op, keys, stack);
  } catch (...) {
    count_vendor_refusal(op.schema(), keys, *stack);
    throw;
  }
}

}  // namespace

void ListedKernels::exchange(DispatcherLock& dispatcher) {
  auto* const kernels = new Kernels;
  for_each_listed_operator([&](const c10::OperatorName& name) {
    c10::impl::OperatorEntry* const entry = dispatcher.find(name);
    if (entry == nullptr) return;
    for (const DispatchKey key : {DispatchKey::PrivateUse1, DispatchKey::SparseCsrPrivateUse1}) {
      if (dispatcher.kernel(*entry, key) == nullptr) continue;
      (*kernels)[&entry->operator_name()].find(dispatcher, name, key);
      return;
    }
  });
  // Complete before it is seen: threads may still be inside ours from an earlier arming.
  exchanged.store(kernels, std::memory_order_release);
  const auto ours = c10::KernelFunction::makeFromBoxedFunction<&watched>();
  for (auto& [name, kernel] : *kernels) kernel.put(dispatcher, ours);
}

void ListedKernels::restore(DispatcherLock& dispatcher) {
  Kernels* const kernels = exchanged.load(std::memory_order_acquire);
  if (kernels == nullptr) return;
  for (auto& [name, kernel] : *kernels) kernel.restore(dispatcher);
}

}  // namespace nfe
