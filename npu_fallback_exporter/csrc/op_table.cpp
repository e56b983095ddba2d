#include "op_table.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>

#include "clock.h"

namespace nfe {
namespace {

std::mutex& table_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  for (const char character : text) {
    hash = (hash ^ static_cast<std::uint8_t>(character)) * 0x100000001B3ull;
  }
  return hash;
}

// A name as the page holds it: names that are too long are cut, and stay distinct.
std::string page_name(const OpRecord& record) {
  std::string name = record.full_name();
  if (name.size() <= kOpNameBytes) return name;
  char suffix[18];
  std::snprintf(suffix, sizeof suffix, "~%016llx", static_cast<unsigned long long>(fnv1a(name)));
  name.resize(kOpNameBytes - std::strlen(suffix));
  return name + suffix;
}

Slot& other_slot(Page* page, Kind kind, std::uint32_t npu) {
  Slot& slot = page->slots[kGeneralSlots + static_cast<std::size_t>(kind) * kMaxNpus + npu];
  slot.key.store(row_key(0, kind, npu), std::memory_order_release);
  return slot;
}

// How many rows of a table are used. Never more than there are, whoever has written to the page.
std::uint64_t used(const Counter& rows, std::uint64_t most) {
  return std::min(rows.load(std::memory_order_relaxed), most);
}

// Row of `record` in the page's op table; 0 when there is no room.
std::uint64_t find_or_add_op_row(Page* page, const OpRecord& record) {
  const std::string name = page_name(record);
  const std::uint64_t rows = used(page->header.op_rows, kMaxOps);
  for (std::uint64_t row = 1; row < rows; ++row) {
    const OpRow& op = page->ops[row];
    const std::uint32_t bytes = op.name_bytes.load(std::memory_order_relaxed);
    if (bytes == name.size() && std::memcmp(op.name, name.data(), bytes) == 0) return row;
  }
  // Row 0 is __other__, so max_ops distinct ops take rows 1 to max_ops.
  if (rows > std::min<std::uint64_t>(page->header.max_ops, kMaxOps - 1)) return 0;
  OpRow& op = page->ops[rows];
  op.has_cpu_kernel = record.has_cpu_kernel ? 1 : 0;
  op.first_seen_unix_ns = unix_ns();
  std::memcpy(op.name, name.data(), name.size());
  op.name_bytes.store(static_cast<std::uint32_t>(name.size()), std::memory_order_release);
  page->header.op_rows.store(rows + 1, std::memory_order_release);
  return rows;
}

Slot* find_or_add_general_slot(Page* page, std::uint64_t key) {
  const std::uint64_t slots = used(page->header.general_slots, kGeneralSlots);
  for (std::uint64_t index = 0; index < slots; ++index) {
    if (page->slots[index].key.load(std::memory_order_relaxed) == key) return &page->slots[index];
  }
  if (slots == kGeneralSlots) return nullptr;
  page->slots[slots].key.store(key, std::memory_order_release);
  page->header.general_slots.store(slots + 1, std::memory_order_release);
  return &page->slots[slots];
}

}  // namespace

OpTable& OpTable::instance() {
  // Never destroyed: threads may count while static objects are torn down.
  static OpTable* const table = new OpTable;
  return *table;
}

OpTable::OpTable() {
  table_mutex();
  other_.name = "__other__";
}

void OpTable::in_forked_child() noexcept { new (&table_mutex()) std::mutex; }

OpRecord* OpTable::publish(OpRecord* record) {
  const std::lock_guard<std::mutex> lock(table_mutex());
  for (std::size_t step = 0; step < kProbes; ++step) {
    std::atomic<OpRecord*>& place = entry(record->key, step);
    OpRecord* const present = place.load(std::memory_order_relaxed);
    if (present == nullptr) {
      watch_locked(record->key, record->has_cpu_kernel);
      place.store(record, std::memory_order_release);
      return record;
    }
    if (present->key == record->key && present->name == record->name &&
        present->overload == record->overload) {
      delete record;  // another thread was first; nobody has seen this one
      return present;
    }
  }
  delete record;
  return &other_;
}

Slot* OpTable::find_or_add_slot(Page* page, std::uint32_t generation, OpRecord& record, Kind kind,
                                std::uint32_t npu) noexcept {
  npu = std::min<std::uint32_t>(npu, kMaxNpus - 1);
  const std::lock_guard<std::mutex> lock(table_mutex());
  const std::uint64_t row = &record == &other_ ? 0 : find_or_add_op_row(page, record);
  Slot* slot = row == 0 ? nullptr : find_or_add_general_slot(page, row_key(row, kind, npu));
  if (slot == nullptr) {
    slot = &other_slot(page, kind, npu);
    if (record.overflowed_in.exchange(generation, std::memory_order_relaxed) != generation) {
      page->header.ops_overflowed.fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (npu < OpRecord::kRememberedNpus) {
    const std::uint64_t index = static_cast<std::uint64_t>(slot - page->slots);
    record.remembered[static_cast<std::size_t>(kind)][npu].store(
        static_cast<std::uint64_t>(generation) << 32 | index, std::memory_order_relaxed);
  }
  return slot;
}

void OpTable::count_sync(Page& page, const OpRecord& record, std::uint32_t npu) noexcept {
  const std::lock_guard<std::mutex> lock(table_mutex());
  const std::uint64_t key = row_key(find_or_add_op_row(&page, record), Kind::kDispatcher, npu);
  const std::uint64_t rows = used(page.header.sync_rows, kSyncRows - 1);
  std::uint64_t row = 0;
  while (row < rows && page.syncs[row].key.load(std::memory_order_relaxed) != key) ++row;
  if (row == kSyncRows - 1) {
    page.syncs[row].key.store(row_key(0, Kind::kDispatcher, 0), std::memory_order_release);
  } else if (row == rows) {
    page.syncs[row].key.store(key, std::memory_order_release);
    page.header.sync_rows.store(rows + 1, std::memory_order_release);
  }
  page.syncs[row].count.fetch_add(1, std::memory_order_relaxed);
}

void OpTable::forget_watched() {
  const std::lock_guard<std::mutex> lock(table_mutex());
  watched_keys_.clear();
  watched_with_cpu_kernel_.store(0, std::memory_order_relaxed);
  watched_without_cpu_kernel_.store(0, std::memory_order_relaxed);
}

void OpTable::watch(const void* key, bool has_cpu_kernel) {
  const std::lock_guard<std::mutex> lock(table_mutex());
  watch_locked(key, has_cpu_kernel);
}

void OpTable::watch_locked(const void* key, bool has_cpu_kernel) {
  if (!watched_keys_.insert(key).second) return;
  (has_cpu_kernel ? watched_with_cpu_kernel_ : watched_without_cpu_kernel_)
      .fetch_add(1, std::memory_order_relaxed);
}

OpTable::Watched OpTable::watched() const noexcept {
  return {watched_with_cpu_kernel_.load(std::memory_order_relaxed),
          watched_without_cpu_kernel_.load(std::memory_order_relaxed)};
}

}  // namespace nfe
