#include "process_identity.h"

#include <dirent.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "clock.h"
#include "file_status.h"

namespace nfe {
namespace {

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::uint64_t read_start_ticks() {
  const std::string stat = read_file("/proc/self/stat");
  // The second field is the command in parentheses, which may itself hold blanks and parentheses.
  std::size_t at = stat.rfind(')');
  if (at == std::string::npos) return 0;
  constexpr int kFieldsAfterCommand = 20;  // start time is field 22
  for (int field = 0; field < kFieldsAfterCommand; ++field) {
    at = stat.find(' ', at + 1);
    if (at == std::string::npos) return 0;
  }
  return std::strtoull(stat.c_str() + at + 1, nullptr, 10);
}

}  // namespace

std::string ProcessIdentity::random_hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : random) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

ProcessIdentity identify_process() {
  ProcessIdentity identity;
  identity.boot_id = read_file("/proc/sys/kernel/random/boot_id").substr(0, 36);
  struct stat status {};
  if (file_status("/proc/self/ns/pid", &status) == 0) identity.pid_namespace = status.st_ino;
  identity.start_ticks = read_start_ticks();
  identity.pid = getpid();
  if (getrandom(identity.random.data(), identity.random.size(), GRND_NONBLOCK) !=
      static_cast<ssize_t>(identity.random.size())) {
    // Before the kernel's pool is ready: the clock and the pid are unique enough on one host.
    const std::uint64_t words[2] = {unix_ns(), static_cast<std::uint64_t>(identity.pid)};
    std::memcpy(identity.random.data(), words, sizeof words);
  }
  return identity;
}

std::array<std::uint64_t, 4> davinci_devices(const char* folder) {
  std::array<std::uint64_t, 4> bits{};
  DIR* directory = opendir(folder);
  if (directory == nullptr) return bits;
  constexpr char kPrefix[] = "davinci";
  constexpr std::size_t kPrefixBytes = sizeof kPrefix - 1;
  while (const dirent* entry = readdir(directory)) {
    if (std::strncmp(entry->d_name, kPrefix, kPrefixBytes) != 0) continue;
    const char* digits = entry->d_name + kPrefixBytes;
    char* end = nullptr;
    const unsigned long number = std::strtoul(digits, &end, 10);
    const bool is_number = *digits >= '0' && *digits <= '9' && *end == '\0';
    if (is_number && number < 64 * bits.size()) bits[number / 64] |= 1ull << (number % 64);
  }
  closedir(directory);
  return bits;
}

}  // namespace nfe
