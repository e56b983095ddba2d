// Who this process is, in terms that stay unique across pid namespaces and pid reuse.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace nfe {

struct ProcessIdentity {
  std::string boot_id;
  std::uint64_t pid_namespace = 0;  // 0: /proc is not readable
  std::uint64_t start_ticks = 0;    // 0: /proc is not readable
  std::int64_t pid = 0;
  std::array<std::uint8_t, 16> random{};  // new at every call: one per page

  std::string random_hex() const;
};

ProcessIdentity identify_process();

// Bit N of the 256: /dev/davinciN exists, the device node of physical chip N.
std::array<std::uint64_t, 4> davinci_devices(const char* folder = "/dev");

}  // namespace nfe
