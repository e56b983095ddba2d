// stat() by system call: glibc has these functions as symbols since 2.33 only, and the hook also
// loads where it is older. On 64-bit machines the kernel's struct is the C library's. Safe in a
// signal handler.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nfe {

// As fstatat(): of what `path` names, or with AT_SYMLINK_NOFOLLOW of a link itself.
inline int file_status(const char* path, struct stat* status, int flags = 0) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, status, flags));
}

// As fstat().
inline int file_status(int descriptor, struct stat* status) noexcept {
  return static_cast<int>(syscall(SYS_fstat, descriptor, status));
}

}  // namespace nfe
