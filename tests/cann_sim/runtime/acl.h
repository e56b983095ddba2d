// The part of CANN's C interface that the simulated runtime speaks.
// Names and numbers are the interface's; nothing else is taken from it.
#pragma once

#include <cstddef>
#include <cstdint>

using aclError = int;

constexpr aclError kOk = 0;
constexpr aclError kInvalidParam = 107000;
constexpr aclError kNoContext = 107002;
constexpr aclError kOutOfMemory = 207001;
constexpr aclError kNotSupported = 207000;

enum class CopyKind : int {
  kHostToHost = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kByAddress = 4,
};

enum class Place : int { kHost = 0, kDevice = 1, kUnregistered = 2 };

struct aclrtMemLocation {
  uint32_t id;
  Place type;
};

struct aclrtPtrAttributes {
  aclrtMemLocation location;
  uint32_t pageSize;
  uint32_t reserved[4];
};

struct aclrtMemcpyBatchAttr {
  aclrtMemLocation dst;
  aclrtMemLocation src;
  uint8_t reserved[16];
};

struct aclCANNPackageVersion {
  char version[128];
  char parts[4][64];
  char reserved[128];
};

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))
