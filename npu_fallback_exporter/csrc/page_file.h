// Making the file behind a page: reserved, locked, complete before it gets its name.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "page_layout.h"

namespace nfe {

struct PageConfig {
  std::string directory;
  bool directory_is_default = false;  // then it must belong to this user alone
  std::int64_t group = -1;            // readers' group id; -1: none
  std::uint64_t max_ops = 256;
  Track track = Track::kAll;
  Boundary boundary = Boundary::kNone;
  bool visible_devices_set = false;
  std::string visible_devices;
  std::string torch_version;
  std::string torch_npu_version;
  std::string cann_version;
  std::string hook_version;
};

// A page of this process. The lock on `descriptor` says that the writer lives: it is an
// open-file-description lock, so it survives other opens and closes of the file in this process.
// The descriptor is shared with a forked child, which must close it at once.
struct PageFile {
  Page* page = nullptr;
  int descriptor = -1;
  std::string path;
};

// Throws Error with reason "page" when the folder cannot hold a page. Leaves nothing behind then.
PageFile create_page_file(const PageConfig& config);

// A page in private memory, which nobody else sees: for a process whose hook must go on without a
// file. Its path is empty; `page` is null when there is no memory.
PageFile create_private_page(const PageConfig& config) noexcept;

// In a forked child: lets go of the parent's page without touching its contents.
void release_page_file(PageFile& file) noexcept;

}  // namespace nfe
