// Initialisation, devices, contexts, versions.
#include "device.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "ledger.h"

namespace {

constexpr int kNoDevice = -1;
constexpr int kMostDevices = 64;

std::atomic<bool> is_initialised{false};
thread_local int thread_device = kNoDevice;
char contexts[kMostDevices];  // one address per device, nothing more is asked of a context

const char* text_from_env(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

}  // namespace

namespace sim {

bool initialised() { return is_initialised; }

double number_from_env(const char* name, double otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::atof(value) : otherwise;
}

int device_count() {
  static const int count = static_cast<int>(number_from_env("CANN_SIM_DEVICES", 2));
  return count < kMostDevices ? count : kMostDevices;
}

uint64_t device_memory() {
  static const uint64_t bytes =
      static_cast<uint64_t>(number_from_env("CANN_SIM_MEMORY_GB", 64) * (1ull << 30));
  return bytes;
}

int current_device_or(int other) { return thread_device == kNoDevice ? other : thread_device; }

void spend(double seconds) {
  using clock = std::chrono::steady_clock;
  if (seconds <= 0) return;
  const auto until = clock::now() + std::chrono::duration_cast<clock::duration>(
                                        std::chrono::duration<double>(seconds));
  // The scheduler wakes a sleeper late by some tens of microseconds; the rest is spun.
  constexpr auto kWakeUp = std::chrono::microseconds(150);
  if (until - clock::now() > 2 * kWakeUp) std::this_thread::sleep_until(until - kWakeUp);
  while (clock::now() < until) {
  }
}

}  // namespace sim

SIM_EXPORT aclError aclInit(const char*) {
  SIM_ENTER();
  is_initialised = true;
  return kOk;
}

SIM_EXPORT aclError aclFinalize() {
  SIM_COUNT();
  is_initialised = false;
  return kOk;
}

SIM_EXPORT aclError aclrtSetDevice(int32_t device) {
  SIM_ENTER();
  if (device < 0 || device >= sim::device_count()) return kInvalidParam;
  thread_device = device;
  return kOk;
}

SIM_EXPORT aclError aclrtGetDevice(int32_t* device) {
  SIM_ENTER();
  if (thread_device == kNoDevice) return kNoContext;
  *device = thread_device;
  return kOk;
}

SIM_EXPORT aclError aclrtResetDevice(int32_t) {
  SIM_COUNT();
  return kOk;
}

SIM_EXPORT aclError aclrtGetDeviceCount(uint32_t* count) {
  SIM_ENTER();
  *count = static_cast<uint32_t>(sim::device_count());
  return kOk;
}

SIM_EXPORT aclError aclrtGetCurrentContext(void** context) {
  SIM_ENTER();
  if (thread_device == kNoDevice) return kNoContext;
  *context = &contexts[thread_device];
  return kOk;
}

SIM_EXPORT aclError aclrtSetCurrentContext(void* context) {
  SIM_ENTER();
  const char* at = static_cast<const char*>(context);
  if (at < contexts || at >= contexts + sim::device_count()) return kInvalidParam;
  thread_device = static_cast<int>(at - contexts);
  return kOk;
}

SIM_EXPORT aclError aclrtGetPrimaryCtxState(int32_t, uint32_t* flags, int32_t* active) {
  SIM_ENTER();
  if (flags != nullptr) *flags = 0;
  if (active != nullptr) *active = 1;
  return kOk;
}

SIM_EXPORT const char* aclrtGetSocName() {
  SIM_COUNT();
  return "Ascend910B3";
}

SIM_EXPORT aclError aclrtGetDeviceInfo(uint32_t, int attribute, int64_t* value) {
  SIM_ENTER();
  constexpr int kTotalMemory = 301;
  *value = attribute == kTotalMemory ? static_cast<int64_t>(sim::device_memory()) : 1;
  return kOk;
}

SIM_EXPORT aclError aclGetDeviceCapability(uint32_t, int, int64_t* value) {
  SIM_ENTER();
  *value = 1;
  return kOk;
}

SIM_EXPORT aclError aclrtGetLogicDevIdByUserDevId(int32_t user, int32_t* logical) {
  SIM_ENTER();
  *logical = user;
  return kOk;
}

SIM_EXPORT aclError aclrtDeviceGetUuid(int32_t device, char* uuid) {
  SIM_ENTER();
  std::memset(uuid, 0, 16);
  uuid[15] = static_cast<char>(device);
  return kOk;
}

SIM_EXPORT aclError aclrtDeviceGetBareTgid(int32_t* pid) {
  SIM_ENTER();
  *pid = getpid();
  return kOk;
}

SIM_EXPORT aclError aclrtDeviceCanAccessPeer(int32_t* can, int32_t, int32_t) {
  SIM_ENTER();
  *can = 1;
  return kOk;
}

SIM_EXPORT aclError aclsysGetCANNVersion(int package, aclCANNPackageVersion* version) {
  SIM_ENTER();
  constexpr int kDriver = 7;
  std::memset(version, 0, sizeof(*version));
  // torch_npu chooses code paths by these two: the README lists what hangs on them.
  const char* text = package == kDriver ? text_from_env("CANN_SIM_DRIVER", "25.5.0")
                                        : text_from_env("CANN_SIM_CANN", "9.0.0");
  std::strncpy(version->version, text, sizeof(version->version) - 1);
  return kOk;
}

SIM_EXPORT aclError aclsysGetVersionStr(char*, char* version) {
  SIM_ENTER();
  std::strncpy(version, text_from_env("CANN_SIM_CANN", "9.0.0"), 127);
  return kOk;
}
