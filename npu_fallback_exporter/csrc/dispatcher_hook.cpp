#include "dispatcher_hook.h"

#include <atomic>
#include <cstdio>
#include <exception>
#include <string>

#include "clock.h"
#include "copy_context.h"
#include "counters.h"
#include "dispatcher_access.h"
#include "event_bytes.h"
#include "first_sight.h"
#include "page_writer.h"
#include "op_stack.h"
#include "policy.h"
#include "refusal.h"
#include "summary.h"

namespace nfe {
namespace {

constexpr c10::DispatchKey kNpu = c10::DispatchKey::PrivateUse1;

std::atomic<const c10::KernelFunction*> previous_fallback{nullptr};
std::atomic<bool> is_armed{false};
std::atomic<bool> vendor_switch_is_set{false};
std::atomic<bool> tracks{false};

OpRecord& record_of(const c10::OperatorHandle& op, Page& page) {
  const c10::OperatorName& name = op.operator_name();
  OpTable& table = OpTable::instance();
  if (OpRecord* record = table.find(&name, name.name, name.overload_name)) return *record;
  OpRecord* added = table.add(&name, name.name, name.overload_name, [&](OpRecord& record) {
    record.has_cpu_kernel = op.hasKernelForDispatchKey(c10::DispatchKey::CPU);
    record.written_arguments = written_arguments(op.schema());
    record.new_results = new_results(op.schema());
  });
  PageWriter::show_watched(page);  // one more, if it was defined after arming
  return *added;
}

constexpr char kReason[] = "no NPU kernel is registered";

// Where nothing can be counted, what is refused is refused all the same.
void refuse_uncounted(const c10::OperatorHandle& op) {
  const std::string name = c10::toString(op.operator_name());
  if (is_refused(name)) refuse(name, Kind::kDispatcher, 0, kReason);
}

void tell_summary(const Page& page, std::uint64_t now_ns) {
  if (Policy::instance().mode() == Mode::kObserve) return;
  const auto line = Summary::at_event(page, now_ns);
  if (line.has_value()) std::fprintf(stderr, "%s\n", line->c_str());
}

// The fallback on the thread's operator stack, so that copies inside it are known as its own.
// Without the tracker nothing looks at it, and the host time stays unmeasured.
class FallbackFrame {
 public:
  explicit FallbackFrame(const c10::FunctionSchema& schema) : stack_(OpStack::of_this_thread()) {
    stack_.push(&schema);
    if (OpFrame* frame = own()) frame->is_fallback = true;
  }
  FallbackFrame(const FallbackFrame&) = delete;
  FallbackFrame& operator=(const FallbackFrame&) = delete;

  // Adds the host time to `cost` and counts the transfers.
  void finish(Page& page, std::uint64_t end_ns, EventCost& cost) {
    finished_ns_ = cost.duration_ns;
    OpFrame* const frame = own();
    if (frame == nullptr || !tracks.load(std::memory_order_relaxed)) return;
    cost.host_ns = cost.duration_ns;
    if (frame->has_copies) {
      if (const std::uint64_t first = frame->copies.first_to_host_end_ns; first != 0) {
        cost.host_ns = end_ns - first;
      }
      count_tally(page, *frame, Cause::kFallback);
    }
    cost.host_ns -= std::min(cost.host_ns, frame->nested_event_ns);
    cost.host_is_measured = true;
  }

  ~FallbackFrame() {
    if (OpFrame* frame = own(); frame != nullptr && frame->has_copies) --stack_.with_copies;
    stack_.pop();
    if (OpFrame* outer = stack_.top()) outer->nested_event_ns += finished_ns_;
  }

 private:
  OpFrame* own() { return stack_.depth() <= OpStack::kFrames ? stack_.top() : nullptr; }

  OpStack& stack_;
  std::uint64_t finished_ns_ = 0;
};

void counting_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                       torch::jit::Stack* stack) {
  const c10::KernelFunction& previous = *previous_fallback.load(std::memory_order_acquire);
  PageWriter& writer = PageWriter::instance();
  Page* page = writer.page();
  const bool armed = is_armed.load(std::memory_order_relaxed);
  if (page == nullptr || !armed) {
    if (armed) refuse_uncounted(op);
    previous.callBoxed(op, keys, stack);
    return;
  }
  OpRecord& record = record_of(op, *page);
  const auto slot = [&](std::uint32_t npu) -> Slot& {
    return *OpTable::instance().slot_for(page, writer.generation(), record, Kind::kDispatcher, npu);
  };
  EventBytes bytes(record, op.schema().arguments().size(), *stack);
  refuse_unless_allowed(record, Kind::kDispatcher, bytes.npu(), kReason);
  FirstSight sight(record, Kind::kDispatcher, writer.generation(), op.schema(), *stack);
  EventCost cost;
  FallbackFrame frame(op.schema());
  const std::uint64_t begin = monotonic_ns();
  try {
    previous.callBoxed(op, keys, stack);
  } catch (...) {
    Slot& failed = slot(bytes.npu());
    DispatcherHook::vendor_refuses() ? count_blocked(failed) : count_error(failed);
    throw;
  }
  const std::uint64_t end = monotonic_ns();
  cost.duration_ns = end - begin;
  frame.finish(*page, end, cost);
  cost.bytes = bytes.finish(record, op.schema().returns().size(), *stack);
  Slot& counted = slot(bytes.npu());
  count_event(counted, cost);
  page->header.last_seen_ns.store(end, std::memory_order_relaxed);
  sight.tell(counted, bytes.npu(), cost, kReason);
  tell_summary(*page, end);
}

// Exchanges the fallback and lets every operator that ends in it see the new one. Reading threads
// need no lock: both kernels are plain functions, so one aligned word changes per table entry.
void exchange(DispatcherLock& dispatcher, const c10::KernelFunction& kernel) {
  dispatcher.fallback(kNpu).kernel = kernel;
  OpTable::instance().forget_watched();
  dispatcher.for_each_falling_back(kNpu, [&](c10::impl::OperatorEntry& entry) {
    dispatcher.update(entry, kNpu);
    if (!entry.hasSchema()) return;
    OpTable::instance().watch(&entry.operator_name(),
                              entry.hasKernelForDispatchKey(c10::DispatchKey::CPU));
  });
}

}  // namespace

bool DispatcherHook::has_fallback() {
  return c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(kNpu);
}

bool DispatcherHook::arm() {
  DispatcherLock dispatcher;
  const c10::KernelFunction& present = dispatcher.fallback(kNpu).kernel;
  if (!present.isValid()) return false;
  if (is_armed.load(std::memory_order_relaxed)) return true;
  // A copy per arming, never freed: see the class comment.
  previous_fallback.store(new c10::KernelFunction(present), std::memory_order_release);
  exchange(dispatcher, c10::KernelFunction::makeFromBoxedFunction<&counting_fallback>());
  is_armed.store(true, std::memory_order_release);
  return true;
}

void DispatcherHook::disarm() {
  DispatcherLock dispatcher;
  if (!is_armed.exchange(false, std::memory_order_acq_rel)) return;
  exchange(dispatcher, *previous_fallback.load(std::memory_order_acquire));
}

bool DispatcherHook::armed() noexcept { return is_armed.load(std::memory_order_relaxed); }

void DispatcherHook::set_tracked(bool tracked) noexcept {
  tracks.store(tracked, std::memory_order_relaxed);
}

void DispatcherHook::set_vendor_refuses(bool refuses) noexcept {
  vendor_switch_is_set.store(refuses, std::memory_order_relaxed);
}

bool DispatcherHook::vendor_refuses() noexcept {
  return vendor_switch_is_set.load(std::memory_order_relaxed);
}

}  // namespace nfe
