#include "layout_json.h"

#include <cstddef>
#include <string>

#include "page_layout.h"

namespace nfe {
namespace {

std::string field(const char* name, std::size_t offset, std::size_t size) {
  return std::string("\"") + name + "\":{\"offset\":" + std::to_string(offset) +
         ",\"size\":" + std::to_string(size) + "}";
}

std::string structure(const char* name, std::size_t size, std::initializer_list<std::string> fields) {
  std::string text = std::string("\"") + name + "\":{\"size\":" + std::to_string(size) +
                     ",\"fields\":{";
  const char* separator = "";
  for (const std::string& one : fields) {
    text += separator + one;
    separator = ",";
  }
  return text + "}}";
}

std::string constant(const char* name, std::size_t value) {
  return std::string("\"") + name + "\":" + std::to_string(value);
}

#define NFE_FIELD(type, member) field(#member, offsetof(type, member), sizeof(type::member))
#define NFE_CONSTANT(name) constant(#name, name)

std::string build() {
  return std::string("{\"magic\":\"NPUFBPG\\n\",\"version\":") + std::to_string(kLayoutVersion) +
         ",\"page_bytes\":" + std::to_string(sizeof(Page)) + ",\"constants\":{" +
         NFE_CONSTANT(kMaxOps) + "," + NFE_CONSTANT(kMaxNpus) + "," + NFE_CONSTANT(kKinds) + "," +
         NFE_CONSTANT(kGeneralSlots) + "," + NFE_CONSTANT(kOtherSlots) + "," +
         NFE_CONSTANT(kSlots) + "," + NFE_CONSTANT(kSyncRows) + "," + NFE_CONSTANT(kDirections) +
         "," + NFE_CONSTANT(kCauses) + "," + NFE_CONSTANT(kDurationBuckets) + "," +
         NFE_CONSTANT(kSizeBuckets) + "," + NFE_CONSTANT(kOpNameBytes) + "," +
         NFE_CONSTANT(kNoteBytes) + "," + NFE_CONSTANT(kProcessShards) + "},\"structs\":{" +
         structure("Page", sizeof(Page),
                   {NFE_FIELD(Page, header), NFE_FIELD(Page, shards), NFE_FIELD(Page, transfers),
                    NFE_FIELD(Page, syncs), NFE_FIELD(Page, ops), NFE_FIELD(Page, slots),
                    NFE_FIELD(Page, notes)}) +
         "," +
         structure("Header", sizeof(Header),
                   {NFE_FIELD(Header, magic), NFE_FIELD(Header, layout_version),
                    NFE_FIELD(Header, page_bytes), NFE_FIELD(Header, boot_id),
                    NFE_FIELD(Header, pid_namespace), NFE_FIELD(Header, start_ticks),
                    NFE_FIELD(Header, random), NFE_FIELD(Header, pid),
                    NFE_FIELD(Header, davinci_devices), NFE_FIELD(Header, visible_devices_set),
                    NFE_FIELD(Header, visible_devices), NFE_FIELD(Header, torch_version),
                    NFE_FIELD(Header, torch_npu_version), NFE_FIELD(Header, cann_version),
                    NFE_FIELD(Header, hook_version), NFE_FIELD(Header, created_unix_ns),
                    NFE_FIELD(Header, max_ops), NFE_FIELD(Header, mode),
                    NFE_FIELD(Header, mode_source), NFE_FIELD(Header, track),
                    NFE_FIELD(Header, boundary), NFE_FIELD(Header, armed_ns),
                    NFE_FIELD(Header, armed_since_ns), NFE_FIELD(Header, last_seen_ns),
                    NFE_FIELD(Header, watched_with_cpu_kernel),
                    NFE_FIELD(Header, watched_without_cpu_kernel), NFE_FIELD(Header, op_rows),
                    NFE_FIELD(Header, general_slots), NFE_FIELD(Header, sync_rows),
                    NFE_FIELD(Header, ops_overflowed), NFE_FIELD(Header, note_bytes),
                    NFE_FIELD(Header, notes_dropped), NFE_FIELD(Header, driver_bytes),
                    NFE_FIELD(Header, driver_transfers),
                    NFE_FIELD(Header, transfer_size_buckets)}) +
         "," +
         structure("ProcessShard", sizeof(ProcessShard),
                   {NFE_FIELD(ProcessShard, operators),
                    NFE_FIELD(ProcessShard, device_allocations)}) +
         "," +
         structure("OpRow", sizeof(OpRow),
                   {NFE_FIELD(OpRow, name_bytes), NFE_FIELD(OpRow, has_cpu_kernel),
                    NFE_FIELD(OpRow, first_seen_unix_ns), NFE_FIELD(OpRow, name)}) +
         "," +
         structure("Slot", sizeof(Slot),
                   {NFE_FIELD(Slot, key), NFE_FIELD(Slot, events), NFE_FIELD(Slot, blocked),
                    NFE_FIELD(Slot, errors), NFE_FIELD(Slot, bytes), NFE_FIELD(Slot, host_ns),
                    NFE_FIELD(Slot, host_ns_events), NFE_FIELD(Slot, duration_ns),
                    NFE_FIELD(Slot, duration_buckets)}) +
         "," +
         structure("SyncRow", sizeof(SyncRow),
                   {NFE_FIELD(SyncRow, key), NFE_FIELD(SyncRow, count)}) +
         "," +
         structure("TransferCell", sizeof(TransferCell),
                   {NFE_FIELD(TransferCell, bytes), NFE_FIELD(TransferCell, transfers)}) +
         "," +
         structure("NoteHeader", sizeof(NoteHeader),
                   {NFE_FIELD(NoteHeader, record_bytes), NFE_FIELD(NoteHeader, type),
                    NFE_FIELD(NoteHeader, op_row), NFE_FIELD(NoteHeader, unix_ns),
                    NFE_FIELD(NoteHeader, text_bytes)}) +
         "}}";
}

#undef NFE_FIELD
#undef NFE_CONSTANT

}  // namespace

const std::string& layout_json() {
  static const std::string text = build();
  return text;
}

}  // namespace nfe
