#include "op_stack.h"

#include <atomic>
#include <memory>

namespace nfe {
namespace {

// A pointer, since the library's static thread-local storage must stay small when it is loaded
// late; initial-exec, since it is read at every operator.
__attribute__((tls_model("initial-exec"))) thread_local OpStack* current = nullptr;

OpStack& make_stack() noexcept {
  struct Owner {
    std::unique_ptr<OpStack> stack;
    ~Owner() { current = nullptr; }
  };
  thread_local Owner owner;
  owner.stack = std::make_unique<OpStack>();
  static std::atomic<std::uint32_t> threads{0};
  owner.stack->shard = threads.fetch_add(1, std::memory_order_relaxed);
  current = owner.stack.get();
  return *current;
}

}  // namespace

OpStack& OpStack::of_this_thread() noexcept {
  OpStack* const stack = current;
  return __builtin_expect(stack != nullptr, 1) ? *stack : make_stack();
}

}  // namespace nfe
