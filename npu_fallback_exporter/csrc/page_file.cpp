#include "page_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "clock.h"
#include "error.h"
#include "file_status.h"
#include "process_identity.h"

namespace nfe {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& next_step) {
  throw Error("page", what, next_step);
}

constexpr char kSetDir[] =
    "set NPU_FALLBACK_DIR to a folder on a tmpfs (such as /dev/shm) that this process may write";

// Locks and shared memory do not reach across machines: counters there would be silently wrong.
const char* remote_file_system(long type) {
  struct Known {
    long magic;
    const char* name;
  };
  static constexpr Known kRemote[] = {
      {0x6969, "NFS"},         {0x65735546, "FUSE"},   {0xFF534D42, "CIFS"},
      {0xFE534D42, "SMB2"},    {0x01021997, "9P"},     {0x00C36400, "Ceph"},
      {0x0BD00BD0, "Lustre"},  {0x47504653, "GPFS"},   {0x5346414F, "AFS"},
      {0x786F4256, "VirtualBox share"},
  };
  for (const Known& known : kRemote) {
    if (static_cast<std::uint32_t>(type) == static_cast<std::uint32_t>(known.magic)) {
      return known.name;
    }
  }
  return nullptr;
}

void check_folder(const PageConfig& config) {
  const std::string& folder = config.directory;
  const mode_t mode = config.group >= 0 ? 02750 : 0700;  // setgid: what is made in it is shared
  if (mkdir(folder.c_str(), mode) == 0 && config.group >= 0) {
    // Best effort: readers of the group are told below if the folder stays closed to them.
    if (chown(folder.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(config.group)) != 0 ||
        chmod(folder.c_str(), mode) != 0) {
      fail("cannot give pages folder " + folder + " to group " + std::to_string(config.group) +
               " (" + errno_text() + ")",
           "set NPU_FALLBACK_GROUP to a group of this process, or unset it");
    }
  }
  struct stat status {};
  if (file_status(folder.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    fail("cannot use pages folder " + folder + " (" + errno_text() + ")", kSetDir);
  }
  if (config.directory_is_default &&
      (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022) != 0)) {
    fail("pages folder " + folder + " is not a folder of this user alone",
         "remove it, or set NPU_FALLBACK_DIR to another folder");
  }
  struct statfs file_system {};
  if (statfs(folder.c_str(), &file_system) == 0) {
    if (const char* name = remote_file_system(static_cast<long>(file_system.f_type))) {
      fail("pages folder " + folder + " is on " + name + ", which is not shared memory of this host",
           kSetDir);
    }
  }
}

// Exporters, and processes that arm, merge the pages of ended processes and remove them. Where
// nobody does, the tmpfs must not fill up: its memory is the server's.
void check_number_of_pages(const std::string& folder) {
  constexpr int kMostPages = 1024;
  DIR* directory = opendir(folder.c_str());
  if (directory == nullptr) return;  // may be written but not listed
  int pages = 0;
  while (const dirent* entry = readdir(directory)) {
    const std::size_t length = std::strlen(entry->d_name);
    if (length > 5 && std::strcmp(entry->d_name + length - 5, ".page") == 0) ++pages;
  }
  closedir(directory);
  if (pages >= kMostPages) {
    fail("pages folder " + folder + " holds " + std::to_string(pages) + " pages already",
         "run an exporter that may write there, or remove the pages of processes that ended");
  }
}

template <std::size_t N>
void copy_text(char (&to)[N], const std::string& from) {
  std::memcpy(to, from.data(), std::min(from.size(), N - 1));
}

void fill_header(Header& header, const PageConfig& config, const ProcessIdentity& identity) {
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.layout_version = kLayoutVersion;
  header.page_bytes = sizeof(Page);
  copy_text(header.boot_id, identity.boot_id);
  header.pid_namespace = identity.pid_namespace;
  header.start_ticks = identity.start_ticks;
  std::copy(identity.random.begin(), identity.random.end(), header.random);
  header.pid = identity.pid;
  const auto davinci = davinci_devices();
  std::copy(davinci.begin(), davinci.end(), header.davinci_devices);
  const bool fits = config.visible_devices.size() < sizeof header.visible_devices;
  header.visible_devices_set = config.visible_devices_set ? (fits ? 1 : 2) : 0;
  if (fits) copy_text(header.visible_devices, config.visible_devices);
  copy_text(header.torch_version, config.torch_version);
  copy_text(header.torch_npu_version, config.torch_npu_version);
  copy_text(header.cann_version, config.cann_version);
  copy_text(header.hook_version, config.hook_version);
  header.created_unix_ns = unix_ns();
  header.max_ops = config.max_ops;
  header.track.store(static_cast<std::uint32_t>(config.track), std::memory_order_relaxed);
  header.boundary.store(static_cast<std::uint32_t>(config.boundary), std::memory_order_relaxed);
  header.last_seen_ns.store(monotonic_ns(), std::memory_order_relaxed);
}

void fill_other_op(OpRow& row) {
  constexpr char kOther[] = "__other__";
  std::memcpy(row.name, kOther, sizeof kOther - 1);
  row.name_bytes.store(sizeof kOther - 1, std::memory_order_release);
}

// Closes the descriptor and removes the unfinished file unless the page is kept.
class Unfinished {
 public:
  explicit Unfinished(std::string path) : path_(std::move(path)) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (page != nullptr) munmap(page, sizeof(Page));
    if (descriptor >= 0) {
      close(descriptor);
      unlink(path_.c_str());
    }
  }

  void keep() {
    page = nullptr;
    descriptor = -1;
  }

  int descriptor = -1;
  void* page = nullptr;

 private:
  std::string path_;
};

void lock_whole_file(int descriptor, const std::string& path) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(descriptor, F_OFD_SETLK, &lock) != 0) {
    fail("cannot lock page " + path + " (" + errno_text() + ")", kSetDir);
  }
}

}  // namespace

PageFile create_page_file(const PageConfig& config) {
  check_folder(config);
  check_number_of_pages(config.directory);
  const ProcessIdentity identity = identify_process();
  const std::string stem = config.directory + "/" + std::to_string(identity.pid) + "-" +
                           std::to_string(identity.start_ticks) + "-" + identity.random_hex();
  const std::string unfinished_path = stem + ".tmp";
  const std::string path = stem + ".page";

  Unfinished file(unfinished_path);
  file.descriptor = open(unfinished_path.c_str(),
                         O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file.descriptor < 0) {
    fail("cannot write in pages folder " + config.directory + " (" + errno_text() + ")", kSetDir);
  }
  if (config.group >= 0 &&
      (fchown(file.descriptor, static_cast<uid_t>(-1), static_cast<gid_t>(config.group)) != 0 ||
       fchmod(file.descriptor, 0640) != 0)) {
    fail("cannot give page to group " + std::to_string(config.group) + " (" + errno_text() + ")",
         "set NPU_FALLBACK_GROUP to a group of this process, or unset it");
  }
  // Reserved, not only sized: touching a hole on a full tmpfs would kill the server with SIGBUS.
  if (const int number = posix_fallocate(file.descriptor, 0, sizeof(Page)); number != 0) {
    fail("no room for a page of " + std::to_string(sizeof(Page)) + " bytes in " +
             config.directory + " (" + errno_text(number) + ")",
         "free space there, or set NPU_FALLBACK_DIR to another tmpfs");
  }
  lock_whole_file(file.descriptor, unfinished_path);
  void* memory =
      mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor, 0);
  if (memory == MAP_FAILED) {
    fail("cannot map page in " + config.directory + " (" + errno_text() + ")", kSetDir);
  }
  file.page = memory;
  Page* page = static_cast<Page*>(memory);  // zero bytes are the empty state of every field
  fill_header(page->header, config, identity);
  fill_other_op(page->ops[0]);
  page->header.op_rows.store(1, std::memory_order_release);
  if (rename(unfinished_path.c_str(), path.c_str()) != 0) {
    fail("cannot name page " + path + " (" + errno_text() + ")", kSetDir);
  }
  PageFile result{page, file.descriptor, path};
  file.keep();
  return result;
}

PageFile create_private_page(const PageConfig& config) noexcept {
  void* memory =
      mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {};
  Page* page = static_cast<Page*>(memory);
  page->header.max_ops = config.max_ops;
  fill_other_op(page->ops[0]);
  page->header.op_rows.store(1, std::memory_order_release);
  PageFile result;
  result.page = page;
  return result;
}

void release_page_file(PageFile& file) noexcept {
  if (file.page != nullptr) munmap(static_cast<void*>(file.page), sizeof(Page));
  if (file.descriptor >= 0) close(file.descriptor);
  file.page = nullptr;
  file.descriptor = -1;
}

}  // namespace nfe
