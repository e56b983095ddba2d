// Every way in which the runtime moves bytes. All of them end in move().
#include <cstring>

#include "device.h"
#include "ledger.h"
#include "memory.h"

namespace {

CopyKind kind_between(Place source, Place target) {
  const bool from_device = source == Place::kDevice;
  const bool to_device = target == Place::kDevice;
  if (from_device) return to_device ? CopyKind::kDeviceToDevice : CopyKind::kDeviceToHost;
  return to_device ? CopyKind::kHostToDevice : CopyKind::kHostToHost;
}

double seconds_on_the_bus(size_t bytes) {
  static const double latency = sim::number_from_env("CANN_SIM_COPY_US", 0) * 1e-6;
  static const double bandwidth = sim::number_from_env("CANN_SIM_COPY_GBPS", 0) * 1e9;
  return latency + (bandwidth > 0 ? static_cast<double>(bytes) / bandwidth : 0);
}

aclError move(void* target, size_t room, const void* source, size_t bytes, CopyKind kind) {
  if (bytes > room) return kInvalidParam;
  if (kind == CopyKind::kByAddress)
    kind = kind_between(sim::owner_of(source).place, sim::owner_of(target).place);
  if (kind < CopyKind::kHostToHost || kind > CopyKind::kDeviceToDevice) return kInvalidParam;
  std::memmove(target, source, bytes);
  sim::record_copy(kind, bytes);
  sim::spend(seconds_on_the_bus(bytes));
  return kOk;
}

aclError move_batch(void** targets, size_t* rooms, void** sources, size_t* sizes, size_t count,
                    aclrtMemcpyBatchAttr* attributes, size_t* first_of_attribute,
                    size_t attribute_count, size_t* failed) {
  size_t attribute = 0;
  for (size_t i = 0; i < count; ++i) {
    while (attribute + 1 < attribute_count && first_of_attribute[attribute + 1] <= i) ++attribute;
    const auto& places = attributes[attribute];
    const aclError error = move(targets[i], rooms[i], sources[i], sizes[i],
                                kind_between(places.src.type, places.dst.type));
    if (error != kOk) {
      if (failed != nullptr) *failed = i;
      return error;
    }
  }
  return kOk;
}

}  // namespace

SIM_EXPORT aclError aclrtMemcpy(void* target, size_t room, const void* source, size_t bytes,
                                CopyKind kind) {
  SIM_ENTER();
  return move(target, room, source, bytes, kind);
}

SIM_EXPORT aclError aclrtMemcpyAsync(void* target, size_t room, const void* source, size_t bytes,
                                     CopyKind kind, void*) {
  SIM_ENTER();
  return move(target, room, source, bytes, kind);
}

SIM_EXPORT aclError aclrtMemcpyAsyncWithCondition(void* target, size_t room, const void* source,
                                                  size_t bytes, CopyKind kind, void*) {
  SIM_ENTER();
  return move(target, room, source, bytes, kind);
}

SIM_EXPORT aclError aclrtMemcpyBatch(void** targets, size_t* rooms, void** sources, size_t* sizes,
                                     size_t count, aclrtMemcpyBatchAttr* attributes,
                                     size_t* first_of_attribute, size_t attribute_count,
                                     size_t* failed) {
  SIM_ENTER();
  return move_batch(targets, rooms, sources, sizes, count, attributes, first_of_attribute,
                    attribute_count, failed);
}

SIM_EXPORT aclError aclrtMemcpyBatchAsync(void** targets, size_t* rooms, void** sources,
                                          size_t* sizes, size_t count,
                                          aclrtMemcpyBatchAttr* attributes,
                                          size_t* first_of_attribute, size_t attribute_count,
                                          size_t* failed, void*) {
  SIM_ENTER();
  return move_batch(targets, rooms, sources, sizes, count, attributes, first_of_attribute,
                    attribute_count, failed);
}

SIM_EXPORT aclError aclrtMemset(void* target, size_t room, int32_t value, size_t bytes) {
  SIM_ENTER();
  if (bytes > room) return kInvalidParam;
  std::memset(target, value, bytes);
  return kOk;
}

SIM_EXPORT aclError aclrtMemsetAsync(void* target, size_t room, int32_t value, size_t bytes,
                                     void*) {
  SIM_ENTER();
  if (bytes > room) return kInvalidParam;
  std::memset(target, value, bytes);
  return kOk;
}
