#include "tracker.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>

#include "clock.h"
#include "copy_context.h"
#include "counters.h"
#include "kernel_exchange.h"
#include "listed_kernels.h"
#include "op_stack.h"
#include "page_writer.h"
#include "refusal.h"

namespace nfe {

NFE_EXPOSE(FunctionOf, &at::RecordFunction::fn_);

namespace {

constexpr c10::DispatchKey kNpu = c10::DispatchKey::PrivateUse1;

// --- operators --------------------------------------------------------------------------------

// The operator that a frame stands for; null when it is no operator.
const c10::FunctionSchema* operator_of(const at::RecordFunction& function) noexcept {
  const auto* schema =
      std::get_if<at::RecordFunction::schema_ref_t>(&(function.*member(FunctionOf{})));
  return schema == nullptr ? nullptr : &schema->get();
}

std::string_view without_underscore(std::string_view name) {
  if (!name.empty() && name.back() == '_') name.remove_suffix(1);
  return name;
}

// An operator of the same name inside one that copied to the host: the computation itself.
void note_computation_on_host(OpStack& stack, const c10::FunctionSchema& schema) {
  for (std::uint32_t depth = std::min(stack.depth(), OpStack::kFrames); depth > 0; --depth) {
    OpFrame& frame = stack.at(depth);
    if (!frame.has_copies) continue;
    if (!frame.is_fallback &&
        without_underscore(frame.schema->name()) == without_underscore(schema.name())) {
      frame.computed_on_host = true;
    }
    return;
  }
}

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& function) {
  OpStack& stack = OpStack::of_this_thread();
  const c10::FunctionSchema* const schema = operator_of(function);
  if (schema == nullptr) {
    // torch_npu announces each device tensor that it allocates under this name.
    const std::string& name = std::get<std::string>(function.*member(FunctionOf{}));
    if (name == "empty_tensor") PageWriter::instance().count_device_allocation(stack.shard);
    return nullptr;
  }
  if (stack.with_copies != 0) note_computation_on_host(stack, *schema);
  if (stack.depth() == 0) PageWriter::instance().count_operator(stack.shard);
  stack.push(schema);
  return nullptr;
}

void leave(const at::RecordFunction& function, at::ObserverContext*) {
  if (operator_of(function) == nullptr) return;
  OpStack& stack = OpStack::of_this_thread();
  std::uint64_t event_ns = 0;
  if (stack.depth() <= OpStack::kFrames) {
    OpFrame& frame = stack.at(stack.depth());
    event_ns = frame.nested_event_ns;
    if (frame.has_copies) event_ns = std::max(event_ns, finish_operator(stack, frame));
    if (!frame.arguments.empty()) frame.arguments.clear();
  }
  stack.pop();
  if (event_ns != 0 && stack.top() != nullptr) stack.top()->nested_event_ns += event_ns;
}

at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;

// --- copies -----------------------------------------------------------------------------------

KernelExchange copy_kernel;
KernelExchange foreach_copy_kernel;

void refuse_if_listed(OpFrame* owner, std::uint32_t npu) {
  if (owner == nullptr || owner->is_fallback) return;
  OpRecord& record = record_of_frame(*owner->schema);
  if (record.listed) refuse_unless_allowed(record, Kind::kExplicitKernel, npu, kExplicitReason);
}

// Direction, device and size of a copy; false when it stays on its side.
bool describe_copy(const at::Tensor& to, const at::Tensor& from, Copy& copy) {
  const bool to_host = from.is_privateuseone();
  if (to_host == to.is_privateuseone()) return false;
  const at::Tensor& on_device = to_host ? from : to;
  copy.direction = to_host ? Direction::kDeviceToHost : Direction::kHostToDevice;
  copy.npu = static_cast<std::uint32_t>(on_device.device().index());
  copy.bytes = static_cast<std::uint64_t>(to.numel()) * on_device.element_size();
  return true;
}

at::Tensor& counting_copy(c10::DispatchKeySet keys, at::Tensor& self, const at::Tensor& source,
                          bool non_blocking) {
  const auto call = [&]() -> at::Tensor& {
    return copy_kernel.previous().call<at::Tensor&, at::Tensor&, const at::Tensor&, bool>(
        copy_kernel.op(), keys, self, source, non_blocking);
  };
  Copy copy;
  if (!describe_copy(self, source, copy)) return call();
  OpStack& stack = OpStack::of_this_thread();
  OpFrame* const owner = owner_of_copies(stack);
  if (copy.direction == Direction::kDeviceToHost) refuse_if_listed(owner, copy.npu);
  copy.begin_ns = owner == nullptr ? 0 : monotonic_ns();
  at::Tensor& result = call();
  copy.end_ns = owner == nullptr ? 0 : monotonic_ns();
  ++stack.copies;
  note_copy(stack, owner, copy);
  return result;
}

// Takes lists of tensors over the boundary in one batch, or else copies them one by one with
// aten::copy_, which has counted them then.
void counting_foreach_copy(c10::DispatchKeySet keys, at::TensorList self, at::TensorList source,
                           bool non_blocking) {
  OpStack& stack = OpStack::of_this_thread();
  const std::uint64_t copies_before = stack.copies;
  const std::uint64_t begin_ns = monotonic_ns();
  foreach_copy_kernel.previous().call<void, at::TensorList, at::TensorList, bool>(
      foreach_copy_kernel.op(), keys, self, source, non_blocking);
  if (stack.copies != copies_before) return;
  OpFrame* const owner = owner_of_copies(stack);
  Copy copy;
  copy.begin_ns = begin_ns;
  copy.end_ns = monotonic_ns();
  for (std::size_t each = 0; each < self.size() && each < source.size(); ++each) {
    if (describe_copy(self[each], source[each], copy)) note_copy(stack, owner, copy);
  }
}

// --- waits for a value ------------------------------------------------------------------------

// Where in the page a sync is counted: by the operator that the program called.
void count_sync(const c10::OperatorHandle& op, const at::Tensor& tensor) {
  Page* const page = PageWriter::instance().page();
  if (page == nullptr) return;
  const auto npu = static_cast<std::uint32_t>(tensor.device().index());
  OpTable::instance().count_sync(*page, record_of_frame(op.schema()), npu);
}

template <std::size_t Index>
KernelExchange& sync_kernel() {
  static KernelExchange* const exchange = new KernelExchange;
  return *exchange;
}

template <std::size_t Index, typename Result, typename... Rest>
Result counting_sync(c10::DispatchKeySet keys, const at::Tensor& self, Rest... rest) {
  KernelExchange& exchange = sync_kernel<Index>();
  count_sync(exchange.op(), self);
  return exchange.previous().call<Result, const at::Tensor&, Rest...>(exchange.op(), keys, self,
                                                                      rest...);
}

constexpr std::size_t kScalar = 0;
constexpr std::size_t kIndex = 7;

using OptionalTensors = c10::List<std::optional<at::Tensor>>;

// Indexing waits only when a mask is among the indices: the result's shape depends on its values.
at::Tensor counting_index(c10::DispatchKeySet keys, const at::Tensor& self,
                          const OptionalTensors& indices) {
  KernelExchange& exchange = sync_kernel<kIndex>();
  for (const std::optional<at::Tensor> index : indices) {
    if (!index.has_value() || !index->defined()) continue;
    if (index->scalar_type() == at::kBool || index->scalar_type() == at::kByte) {
      count_sync(exchange.op(), self);
      break;
    }
  }
  return exchange.previous().call<at::Tensor, const at::Tensor&, const OptionalTensors&>(
      exchange.op(), keys, self, indices);
}

at::Scalar counting_scalar(c10::DispatchKeySet keys, const at::Tensor& self) {
  if (Page* const page = PageWriter::instance().page()) {
    Copy copy;
    copy.npu = static_cast<std::uint32_t>(self.device().index());
    copy.bytes = self.element_size();
    count_transfer(*page, copy, Cause::kSync);
  }
  return counting_sync<kScalar, at::Scalar>(keys, self);
}

using OneTensor = at::Tensor;
using TwoTensors = std::tuple<at::Tensor, at::Tensor>;
using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

template <std::size_t Index, auto Function>
void exchange_sync(DispatcherLock& dispatcher, const char* name, const char* overload = "") {
  sync_kernel<Index>().exchange(
      dispatcher, {name, overload}, kNpu,
      c10::KernelFunction::makeFromUnboxedFunction(TORCH_FN(Function)));
}

void exchange_syncs(DispatcherLock& dispatcher) {
  exchange_sync<kScalar, &counting_scalar>(dispatcher, "aten::_local_scalar_dense");
  exchange_sync<1, &counting_sync<1, OneTensor>>(dispatcher, "aten::nonzero");
  exchange_sync<2, &counting_sync<2, OneTensor, const at::Tensor&>>(dispatcher,
                                                                    "aten::masked_select");
  exchange_sync<3, &counting_sync<3, TwoTensors, bool, bool>>(dispatcher, "aten::_unique");
  exchange_sync<4, &counting_sync<4, ThreeTensors, bool, bool, bool>>(dispatcher, "aten::_unique2");
  exchange_sync<5, &counting_sync<5, ThreeTensors, bool, bool, std::optional<std::int64_t>>>(
      dispatcher, "aten::unique_consecutive");
  exchange_sync<6, &counting_sync<6, ThreeTensors, std::int64_t, bool, bool, bool>>(
      dispatcher, "aten::unique_dim");
  exchange_sync<kIndex, &counting_index>(dispatcher, "aten::index", "Tensor");
}

template <std::size_t... Indices>
void restore_syncs(DispatcherLock& dispatcher, std::index_sequence<Indices...>) {
  (sync_kernel<Indices>().restore(dispatcher), ...);
}

}  // namespace

void Tracker::arm() {
  if (callback != at::INVALID_CALLBACK_HANDLE) return;
  {
    DispatcherLock dispatcher;
    copy_kernel.exchange(dispatcher, {"aten::copy_", ""}, kNpu,
                         c10::KernelFunction::makeFromUnboxedFunction(TORCH_FN(counting_copy)));
    foreach_copy_kernel.exchange(
        dispatcher, {"aten::_foreach_copy_", ""}, kNpu,
        c10::KernelFunction::makeFromUnboxedFunction(TORCH_FN(counting_foreach_copy)));
    exchange_syncs(dispatcher);
    ListedKernels::exchange(dispatcher);
  }
  callback = at::addGlobalCallback(
      at::RecordFunctionCallback(&enter, &leave).scopes({at::RecordScope::FUNCTION}));
}

void Tracker::disarm() {
  if (callback == at::INVALID_CALLBACK_HANDLE) return;
  at::removeCallback(callback);
  callback = at::INVALID_CALLBACK_HANDLE;
  DispatcherLock dispatcher;
  copy_kernel.restore(dispatcher);
  foreach_copy_kernel.restore(dispatcher);
  ListedKernels::restore(dispatcher);
  restore_syncs(dispatcher, std::make_index_sequence<kIndex + 1>{});
}

}  // namespace nfe
