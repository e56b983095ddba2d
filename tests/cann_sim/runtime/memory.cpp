// Device memory is host memory; a map remembers which ranges count as device memory.
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "device.h"
#include "ledger.h"

namespace {

enum class Backing { kHeap, kReserved, kMapped };

struct Range {
  size_t size;
  sim::Owner owner;
  Backing backing;
};

struct Physical {
  int file;
  size_t size;
  int device;
};

constexpr size_t kAlignment = 512;
constexpr size_t kSlack = 512;  // kernels of a real device may read past the end of a tensor

std::mutex guard;
uint64_t used[64];

// Never destroyed: torch's allocators still free memory while the process exits.
std::map<uintptr_t, Range>& ranges() {
  static auto* all = new std::map<uintptr_t, Range>;
  return *all;
}

uintptr_t key(const void* address) { return reinterpret_cast<uintptr_t>(address); }

aclError allocate(void** out, size_t size, sim::Owner owner) {
  if (size == 0) return kInvalidParam;
  const bool on_device = owner.place == Place::kDevice;
  std::lock_guard<std::mutex> lock(guard);
  if (on_device && used[owner.device] + size > sim::device_memory()) return kOutOfMemory;
  const size_t rounded = (size + kSlack + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) return kOutOfMemory;
  if (on_device) used[owner.device] += size;
  ranges()[key(memory)] = {size, owner, Backing::kHeap};
  *out = memory;
  return kOk;
}

aclError release(void* address) {
  std::lock_guard<std::mutex> lock(guard);
  const auto found = ranges().find(key(address));
  if (found == ranges().end() || found->second.backing != Backing::kHeap) return kInvalidParam;
  const Range& range = found->second;
  if (range.owner.place == Place::kDevice) used[range.owner.device] -= range.size;
  ranges().erase(found);
  std::free(address);
  return kOk;
}

sim::Owner this_device() { return {Place::kDevice, sim::current_device_or(0)}; }

}  // namespace

namespace sim {

Owner owner_of(const void* address) {
  std::lock_guard<std::mutex> lock(guard);
  auto after = ranges().upper_bound(key(address));
  while (after != ranges().begin()) {
    --after;
    if (key(address) < after->first + after->second.size) return after->second.owner;
    if (after->second.backing != Backing::kMapped) break;  // a reservation may enclose it
  }
  return {Place::kUnregistered, 0};
}

}  // namespace sim

SIM_EXPORT aclError aclrtMalloc(void** out, size_t size, int) {
  SIM_ENTER();
  return allocate(out, size, this_device());
}

SIM_EXPORT aclError aclrtMallocAlign32(void** out, size_t size, int) {
  SIM_ENTER();
  return allocate(out, size, this_device());
}

SIM_EXPORT aclError aclrtMallocHost(void** out, size_t size) {
  SIM_ENTER();
  return allocate(out, size, {Place::kHost, 0});
}

SIM_EXPORT aclError aclrtMallocHostWithCfg(void** out, uint64_t size, void*) {
  SIM_ENTER();
  return allocate(out, size, {Place::kHost, 0});
}

SIM_EXPORT aclError aclrtFree(void* address) {
  SIM_COUNT();
  return release(address);
}

SIM_EXPORT aclError aclrtFreeHost(void* address) {
  SIM_COUNT();
  return release(address);
}

SIM_EXPORT aclError aclrtGetMemInfo(int, size_t* free_bytes, size_t* total) {
  SIM_ENTER();
  std::lock_guard<std::mutex> lock(guard);
  *total = sim::device_memory();
  *free_bytes = *total - used[this_device().device];
  return kOk;
}

SIM_EXPORT aclError aclrtPointerGetAttributes(const void* address, aclrtPtrAttributes* out) {
  SIM_ENTER();
  const sim::Owner owner = sim::owner_of(address);
  *out = {};
  out->location = {static_cast<uint32_t>(owner.device), owner.place};
  out->pageSize = static_cast<uint32_t>(getpagesize());
  return kOk;
}

// Virtual memory, for PYTORCH_NPU_ALLOC_CONF=expandable_segments:True.

SIM_EXPORT aclError aclrtReserveMemAddress(void** out, size_t size, size_t, void* wish, uint64_t) {
  SIM_ENTER();
  void* memory =
      mmap(wish, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return kOutOfMemory;
  std::lock_guard<std::mutex> lock(guard);
  ranges()[key(memory)] = {size, this_device(), Backing::kReserved};
  *out = memory;
  return kOk;
}

SIM_EXPORT aclError aclrtReleaseMemAddress(void* address) {
  SIM_COUNT();
  std::lock_guard<std::mutex> lock(guard);
  const auto found = ranges().find(key(address));
  if (found == ranges().end()) return kInvalidParam;
  munmap(address, found->second.size);
  ranges().erase(found);
  return kOk;
}

SIM_EXPORT aclError aclrtMallocPhysical(Physical** out, size_t size, const void*, uint64_t) {
  SIM_ENTER();
  std::lock_guard<std::mutex> lock(guard);
  const int device = this_device().device;
  if (used[device] + size > sim::device_memory()) return kOutOfMemory;
  const int file = memfd_create("cann-sim", MFD_CLOEXEC);
  if (file < 0) return kOutOfMemory;
  if (ftruncate(file, static_cast<off_t>(size)) != 0) {
    close(file);
    return kOutOfMemory;
  }
  used[device] += size;
  *out = new Physical{file, size, device};
  return kOk;
}

SIM_EXPORT aclError aclrtFreePhysical(Physical* physical) {
  SIM_COUNT();
  std::lock_guard<std::mutex> lock(guard);
  used[physical->device] -= physical->size;
  close(physical->file);
  delete physical;
  return kOk;
}

SIM_EXPORT aclError aclrtMapMem(void* address, size_t size, size_t offset, Physical* physical,
                                uint64_t) {
  SIM_ENTER();
  void* memory = mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                      physical->file, static_cast<off_t>(offset));
  return memory == MAP_FAILED ? kOutOfMemory : kOk;
}

SIM_EXPORT aclError aclrtUnmapMem(void*) {
  SIM_COUNT();
  return kOk;  // the pages go with the reservation, which torch_npu releases next
}
