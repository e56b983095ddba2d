#include "copy_context.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <unordered_set>

#include "clock.h"
#include "counters.h"
#include "dispatcher_access.h"
#include "first_sight.h"
#include "page_writer.h"
#include "policy.h"

namespace nfe {

namespace {

using c10::DispatchKey;

std::unordered_set<std::string>& listed_operators() {
  static auto* const names = new std::unordered_set<std::string>;
  return *names;
}

// Operators of torch_npu that only move or make tensors: a copy inside them is their caller's.
bool only_moves(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "aten::copy_",  "aten::_to_copy",           "aten::clone",       "aten::contiguous",
      "aten::to",     "aten::_copy_from_and_resize", "npu::copy_memory_", "aten::_foreach_copy_",
      "aten::resize_", "aten::_pin_memory",       "aten::_local_scalar_dense"};
  for (const std::string_view known : kNames) {
    if (known == name) return true;
  }
  return false;
}

// The file of the library that `address` lies in; null when it lies in none.
const char* library_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) == 0 ? nullptr : info.dli_fname;
}

// Whether a kernel's code lies in torch_npu's own libraries. A kernel of ours stands for the one of
// torch_npu's that it was exchanged for (tracker.cpp).
bool is_vendor_code(const c10::KernelFunction& kernel) {
  const void* address = kernel.*member(UnboxedFunctionOf{});
  if (address == nullptr) {
    const auto boxed = (kernel.*member(BoxedKernelOf{})).*member(BoxedFunctionOf{});
    address = reinterpret_cast<const void*>(boxed);
  }
  const char* const path = library_of(address);
  if (path == nullptr) return false;
  if (std::strcmp(path, library_of(reinterpret_cast<const void*>(&only_moves))) == 0) return true;
  const char* slash = std::strrchr(path, '/');
  const std::string_view library = slash == nullptr ? path : slash + 1;
  return library.rfind("libtorch_npu.so", 0) == 0 || library.rfind("libop_plugin", 0) == 0;
}

Role find_role(const c10::FunctionSchema& schema) {
  if (only_moves(schema.name())) return Role::kPass;
  DispatcherLock dispatcher;
  c10::impl::OperatorEntry* const entry = dispatcher.find(schema.operator_name());
  if (entry == nullptr) return Role::kPass;
  Role role = Role::kPass;
  for (const DispatchKey key : {DispatchKey::PrivateUse1, DispatchKey::SparseCsrPrivateUse1,
                                DispatchKey::SparsePrivateUse1}) {
    const c10::impl::AnnotatedKernel* const kernel = dispatcher.kernel(*entry, key);
    if (kernel == nullptr) continue;
    if (is_vendor_code(kernel->kernel)) return Role::kVendor;
    role = Role::kUser;
  }
  return role;
}

std::size_t size_bucket(std::uint64_t bytes) noexcept {
  std::size_t bucket = 0;
  while (bucket < kSizeBuckets - 1 && bytes > kSizeBoundsBytes[bucket]) ++bucket;
  return bucket;
}

constexpr std::size_t index_of(Direction direction) { return static_cast<std::size_t>(direction); }

TransferCell& cell_of(Page& page, std::uint32_t npu, std::size_t direction, Cause cause) noexcept {
  return page.transfers[npu][direction][static_cast<std::size_t>(cause)];
}

bool is_event(const OpFrame& frame, const OpRecord& record) {
  const auto& calls = frame.copies.calls;
  return record.role.load(std::memory_order_relaxed) == static_cast<std::uint8_t>(Role::kVendor) &&
         calls[index_of(Direction::kDeviceToHost)] != 0 &&
         calls[index_of(Direction::kHostToDevice)] != 0 &&
         (record.listed || frame.computed_on_host);
}

void tell_unlisted_in_strict_mode(OpRecord& record, std::uint32_t generation) {
  if (record.listed || Policy::instance().mode() != Mode::kStrict) return;
  if (record.seen_in.exchange(generation, std::memory_order_relaxed) == generation) return;
  std::fprintf(stderr,
               "npu-fallback-exporter: ERROR: %s was computed on the CPU by its NPU kernel (kind "
               "explicit_kernel) and could not be refused: it was recognised only afterwards\n",
               record.full_name().c_str());
}

}  // namespace

void set_listed_operators(const char* names) {
  std::unordered_set<std::string>& listed = listed_operators();
  std::string_view rest = names == nullptr ? "" : names;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (end != 0) listed.emplace(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

void for_each_listed_operator(const std::function<void(const c10::OperatorName&)>& visit) {
  for (const std::string& name : listed_operators()) {
    const std::size_t dot = name.find('.');
    const bool has_overload = dot != std::string::npos;
    visit({name.substr(0, dot), has_overload ? name.substr(dot + 1) : std::string()});
  }
}

OpRecord& record_of_frame(const c10::FunctionSchema& schema) {
  OpTable& table = OpTable::instance();
  OpRecord* record = table.find(&schema, schema.name(), schema.overload_name());
  if (record != nullptr) return *record;
  return *table.add(&schema, schema.name(), schema.overload_name(), [&](OpRecord& made) {
    made.has_cpu_kernel = true;
    made.role.store(static_cast<std::uint8_t>(find_role(schema)), std::memory_order_relaxed);
    made.listed = listed_operators().count(made.full_name()) != 0;
  });
}

OpFrame* owner_of_copies(OpStack& stack) {
  for (std::uint32_t depth = std::min(stack.depth(), OpStack::kFrames); depth > 0; --depth) {
    OpFrame& frame = stack.at(depth);
    if (frame.is_fallback) return &frame;
    const OpRecord& record = record_of_frame(*frame.schema);
    switch (static_cast<Role>(record.role.load(std::memory_order_relaxed))) {
      case Role::kVendor:
        return &frame;
      case Role::kUser:
        return nullptr;
      default:
        break;
    }
  }
  return nullptr;
}

void count_transfer(Page& page, const Copy& copy, Cause cause) noexcept {
  if (copy.bytes == 0) return;  // nothing moves
  const std::size_t direction = index_of(copy.direction);
  TransferCell& cell = cell_of(page, copy.npu, direction, cause);
  add(cell.bytes, copy.bytes);
  add(cell.transfers, 1);
  add(page.header.transfer_size_buckets[direction][size_bucket(copy.bytes)], 1);
}

void note_copy(OpStack& stack, OpFrame* owner, const Copy& copy) {
  if (owner == nullptr) {
    if (Page* page = PageWriter::instance().page()) count_transfer(*page, copy, Cause::kUser);
    return;
  }
  CopyTally& tally = owner->copies;
  if (!owner->has_copies) {
    tally = CopyTally{};
    tally.begin_ns = copy.begin_ns;
    owner->npu = copy.npu;
    owner->has_copies = true;
    ++stack.with_copies;
  }
  const std::size_t direction = index_of(copy.direction);
  if (copy.direction == Direction::kDeviceToHost && tally.first_to_host_end_ns == 0) {
    tally.first_to_host_end_ns = copy.end_ns;
  }
  ++tally.calls[direction];
  tally.bytes[direction] += copy.bytes;
  if (copy.bytes != 0) ++tally.sizes[direction][size_bucket(copy.bytes)];
}

void count_tally(Page& page, const OpFrame& frame, Cause cause) noexcept {
  for (std::size_t direction = 0; direction < kDirections; ++direction) {
    std::uint64_t transfers = 0;
    for (std::size_t bucket = 0; bucket < kSizeBuckets; ++bucket) {
      const std::uint32_t count = frame.copies.sizes[direction][bucket];
      if (count == 0) continue;
      add(page.header.transfer_size_buckets[direction][bucket], count);
      transfers += count;
    }
    if (transfers == 0) continue;
    TransferCell& cell = cell_of(page, frame.npu, direction, cause);
    add(cell.bytes, frame.copies.bytes[direction]);
    add(cell.transfers, transfers);
  }
}

std::uint64_t finish_operator(OpStack& stack, OpFrame& frame) {
  --stack.with_copies;
  PageWriter& writer = PageWriter::instance();
  Page* const page = writer.page();
  if (page == nullptr) return 0;
  OpRecord& record = record_of_frame(*frame.schema);
  if (!is_event(frame, record)) {
    count_tally(*page, frame, Cause::kUser);
    return 0;
  }
  const std::uint64_t now = monotonic_ns();
  Slot& slot = *OpTable::instance().slot_for(page, writer.generation(), record,
                                             Kind::kExplicitKernel, frame.npu);
  count_tally(*page, frame, Cause::kExplicitKernel);
  if (std::uncaught_exceptions() != 0) {
    count_error(slot);
    return 0;
  }
  EventCost cost;
  cost.bytes = frame.copies.bytes;
  cost.duration_ns = now - frame.copies.begin_ns;
  cost.host_ns = now - frame.copies.first_to_host_end_ns;
  cost.host_ns -= std::min(cost.host_ns, frame.nested_event_ns);
  cost.host_is_measured = true;
  count_event(slot, cost);
  page->header.last_seen_ns.store(now, std::memory_order_relaxed);
  FirstSight sight(record, Kind::kExplicitKernel, writer.generation(), *frame.schema,
                   frame.arguments);
  sight.tell(slot, frame.npu, cost, kExplicitReason);
  tell_unlisted_in_strict_mode(record, writer.generation());
  return cost.duration_ns;
}

}  // namespace nfe
