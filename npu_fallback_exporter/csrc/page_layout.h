// The one definition of the page: the file in which one server process keeps its counters.
//
// Writer: the process that owns the page, from any of its threads, through counters.h.
// Readers: any process, with pread(2); they trust nothing and never map the file.
// Memory order: every number is a 64-bit word, added to with relaxed atomics. A row of a table
// becomes visible through its key or length, stored last with release; rows are never moved or
// freed. Torn values do not exist (aligned words); fields of one row may be apart by as many
// events as there are threads counting.
// On fork: the child never writes the parent's page (page_writer.h).
//
// Everything here is fixed by kLayoutVersion. A reader of another version skips the page.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace nfe {

inline constexpr char kMagic[8] = {'N', 'P', 'U', 'F', 'B', 'P', 'G', '\n'};
inline constexpr std::uint32_t kLayoutVersion = 1;

inline constexpr std::size_t kMaxOps = 512;       // rows of the op table; row 0 is __other__
inline constexpr std::size_t kMaxNpus = 128;      // c10::DeviceIndex is an int8
inline constexpr std::size_t kKinds = 2;
inline constexpr std::size_t kGeneralSlots = 768; // first come
inline constexpr std::size_t kOtherSlots = kKinds * kMaxNpus;  // one per (kind, npu): never full
inline constexpr std::size_t kSlots = kGeneralSlots + kOtherSlots;
inline constexpr std::size_t kSyncRows = 256;     // the last one is op __other__, npu 0
inline constexpr std::size_t kDirections = 2;
inline constexpr std::size_t kCauses = 4;
inline constexpr std::size_t kDurationBuckets = 11;  // bounds below, then +Inf
inline constexpr std::size_t kSizeBuckets = 8;       // bounds below, then +Inf
inline constexpr std::size_t kOpNameBytes = 168;
inline constexpr std::size_t kNoteBytes = 128 * 1024;
inline constexpr std::size_t kProcessShards = 16;

// Upper bounds, inclusive: in nanoseconds and in bytes.
inline constexpr std::uint64_t kDurationBoundsNs[kDurationBuckets - 1] = {
    10'000,    30'000,     100'000,    300'000,     1'000'000,
    3'000'000, 10'000'000, 30'000'000, 100'000'000, 1'000'000'000};
inline constexpr std::uint64_t kSizeBoundsBytes[kSizeBuckets - 1] = {
    64, 1ull << 10, 16ull << 10, 256ull << 10, 4ull << 20, 64ull << 20, 1ull << 30};

enum class Kind : std::uint8_t { kDispatcher = 0, kExplicitKernel = 1 };
enum class Direction : std::uint8_t { kDeviceToHost = 0, kHostToDevice = 1 };
enum class Cause : std::uint8_t { kFallback = 0, kExplicitKernel = 1, kSync = 2, kUser = 3 };
enum class Mode : std::uint32_t { kObserve = 0, kWarn = 1, kStrict = 2 };
enum class Track : std::uint32_t { kAll = 0, kFallbacks = 1 };
enum class Boundary : std::uint32_t { kNone = 0, kPartial = 1, kFull = 2 };
// Where the mode came from.
enum class ModeSource : std::uint32_t {
  kDefault = 0,
  kMode = 1,             // NPU_FALLBACK_MODE
  kFallbackDisable = 2,  // TORCH_NPU_FALLBACK_CPU_DISABLE
  kCpuFallback = 3,      // TORCH_NPU_CPU_FALLBACK
  kOppDisable = 4,       // ASCEND_OPP_DISABLE_FALLBACK
  kApi = 5,              // install(mode=...) or set_mode()
};

using Counter = std::atomic<std::uint64_t>;
static_assert(sizeof(Counter) == 8 && Counter::is_always_lock_free);

// Written once, before the file gets its final name, except where an atomic says otherwise.
struct alignas(64) Header {
  char magic[8];
  std::uint32_t layout_version;
  std::uint32_t page_bytes;

  // Identity: tells apart processes whose pid numbers are equal (pid namespaces, reuse).
  char boot_id[40];              // /proc/sys/kernel/random/boot_id, NUL-padded
  std::uint64_t pid_namespace;   // inode of /proc/self/ns/pid
  std::uint64_t start_ticks;     // field 22 of /proc/self/stat
  std::uint8_t random[16];
  std::int64_t pid;

  // What decides the physical chip of a logical index, as seen when arming.
  std::uint64_t davinci_devices[4];   // bit N of the 256: /dev/davinciN exists
  std::uint64_t visible_devices_set;  // 1: ASCEND_RT_VISIBLE_DEVICES is set (perhaps empty)
  char visible_devices[256];          // its value; NUL-padded; longer values: visible_devices_set 2

  // NUL-padded UTF-8; empty: not known.
  char torch_version[64];
  char torch_npu_version[64];
  char cann_version[64];
  char hook_version[64];

  std::uint64_t created_unix_ns;  // CLOCK_REALTIME
  std::uint64_t max_ops;          // distinct ops kept apart; at most kMaxOps - 1

  alignas(64) std::atomic<std::uint32_t> mode;         // Mode
  std::atomic<std::uint32_t> mode_source;              // ModeSource
  std::atomic<std::uint32_t> track;                    // Track
  std::atomic<std::uint32_t> boundary;                 // Boundary
  // Armed time = armed_ns + (armed_since_ns ? now - armed_since_ns : 0); CLOCK_MONOTONIC.
  Counter armed_ns;        // of earlier armed spans
  Counter armed_since_ns;  // 0: not armed now
  Counter last_seen_ns;    // CLOCK_MONOTONIC at the last event, and at exit: bounds the armed
                           // time of a process that was killed
  Counter watched_with_cpu_kernel;
  Counter watched_without_cpu_kernel;

  alignas(64) Counter op_rows;       // rows used in ops[], __other__ included
  Counter general_slots;             // rows used in slots[0 .. kGeneralSlots)
  Counter sync_rows;                 // rows used in syncs[0 .. kSyncRows - 1)
  Counter ops_overflowed;            // distinct ops that got no row or no slot of their own
  Counter note_bytes;                // bytes used in notes[]
  Counter notes_dropped;             // notes that found no room

  // At the driver boundary; meaningful when boundary is not kNone.
  alignas(64) Counter driver_bytes[kDirections];
  Counter driver_transfers[kDirections];
  // Of the same copies as transfers[]; not cumulative.
  Counter transfer_size_buckets[kDirections][kSizeBuckets];
};
static_assert(sizeof(Header) <= 4096);

// Sharded by thread, because every operator adds to it.
struct alignas(64) ProcessShard {
  Counter operators;
  Counter device_allocations;
};

struct OpRow {
  std::atomic<std::uint32_t> name_bytes;  // 0: empty; stored last with release
  std::uint32_t has_cpu_kernel;           // 1 yes, 0 no
  std::uint64_t first_seen_unix_ns;
  char name[kOpNameBytes];                // UTF-8, not terminated; longer names are cut and end in
                                          // "~" and 16 hex digits of their FNV-1a hash
  std::uint64_t reserved;
};
static_assert(sizeof(OpRow) == 192);

// The key of a slot or sync row: bit 63 set, then op row (16 bits), kind (8), npu (8).
inline constexpr std::uint64_t row_key(std::uint64_t op, Kind kind, std::uint64_t npu) {
  return (1ull << 63) | (op << 16) | (static_cast<std::uint64_t>(kind) << 8) | npu;
}

// One (op, kind, npu). slots[kGeneralSlots + kind * kMaxNpus + npu] belongs to op __other__.
struct alignas(64) Slot {
  Counter key;  // 0: empty; stored last with release
  Counter events;
  Counter blocked;
  Counter errors;
  Counter bytes[kDirections];
  Counter host_ns;      // without the first copy to the host; see host_ns_events
  Counter host_ns_events;  // events whose host time is in host_ns (0: not measured)
  Counter duration_ns;  // sum over events
  Counter duration_buckets[kDurationBuckets];  // not cumulative
  std::uint64_t reserved[4];
};
static_assert(sizeof(Slot) == 192);

struct SyncRow {
  Counter key;  // kind is 0
  Counter count;
};

struct TransferCell {
  Counter bytes;
  Counter transfers;
};

// Append-only records, each 8-aligned: NoteHeader, then text_bytes of UTF-8 JSON.
struct NoteHeader {
  std::atomic<std::uint32_t> record_bytes;  // whole record, padded; 0: not there yet (release)
  std::uint16_t type;                       // 1 call site, 2 argument signature
  std::uint16_t op_row;
  std::uint64_t unix_ns;
  std::uint32_t text_bytes;
  std::uint32_t reserved;
};
static_assert(sizeof(NoteHeader) == 24);

struct Page {
  union {
    Header header;
    std::uint8_t header_space[4096];
  };
  ProcessShard shards[kProcessShards];
  TransferCell transfers[kMaxNpus][kDirections][kCauses];
  SyncRow syncs[kSyncRows];
  OpRow ops[kMaxOps];
  Slot slots[kSlots];
  std::uint8_t notes[kNoteBytes];
};
static_assert(sizeof(Page) <= 512 * 1024, "a page is at most 512 KiB");
static_assert(offsetof(Page, slots) % 64 == 0);

}  // namespace nfe
