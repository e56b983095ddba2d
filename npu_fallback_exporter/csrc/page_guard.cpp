#include "page_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <string>

#include "file_status.h"

namespace nfe {
namespace {

std::atomic<Page*> guarded{nullptr};
std::atomic<int> guarded_descriptor{-1};
std::atomic<bool> is_lost{false};
std::atomic<std::size_t> message_bytes{0};
char message[512];
struct sigaction previous;

bool was_cut() noexcept {
  struct stat status {};
  return file_status(guarded_descriptor.load(std::memory_order_relaxed), &status) == 0 &&
         status.st_size < static_cast<off_t>(sizeof(Page));
}

bool is_about_the_page(const siginfo_t& info) noexcept {
  const Page* const page = guarded.load(std::memory_order_acquire);
  if (page == nullptr) return false;
  // Sent, not raised by an access: perhaps by a later handler, which hands on what it got.
  if (info.si_code <= 0) return was_cut();
  const char* const begin = reinterpret_cast<const char*>(page);
  const char* const address = static_cast<const char*>(info.si_addr);
  return address >= begin && address < begin + sizeof(Page);
}

bool replace_page() noexcept {
  // Who comes second tries its access again, until the first one is done.
  if (is_lost.exchange(true)) return true;
  void* const place = guarded.load(std::memory_order_acquire);
  if (mmap(place, sizeof(Page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
           0) == MAP_FAILED) {
    return false;
  }
  const std::size_t bytes = message_bytes.load(std::memory_order_acquire);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, bytes);
  return true;
}

void hand_on(int number, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(number, info, context);
    return;
  }
  const bool was_sent = info->si_code <= 0;
  if (previous.sa_handler == SIG_IGN && was_sent) return;
  if (previous.sa_handler != SIG_IGN && previous.sa_handler != SIG_DFL) {
    previous.sa_handler(number);
    return;
  }
  struct sigaction fatal {};
  fatal.sa_handler = SIG_DFL;
  sigaction(number, &fatal, nullptr);
  if (was_sent) raise(number);  // otherwise the access is tried again, and raises it
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool handled = is_about_the_page(*info) && replace_page();
  errno = saved;
  if (!handled) hand_on(number, info, context);
}

void install() {
  struct sigaction ours {};
  sigaction(SIGBUS, nullptr, &previous);
  ours.sa_sigaction = on_bus_error;
  ours.sa_mask = previous.sa_mask;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (previous.sa_flags & (SA_NODEFER | SA_RESTART));
  sigaction(SIGBUS, &ours, nullptr);
}

}  // namespace

void guard_page(const PageFile& file) {
  unguard_page();
  const std::string text = "npu-fallback-exporter: this process counts nothing any more: page " +
                           file.path + " was cut: find out who writes to it, then restart\n";
  const std::size_t bytes = std::min(text.size(), sizeof message);
  std::memcpy(message, text.data(), bytes);
  message_bytes.store(bytes, std::memory_order_release);
  is_lost.store(false);
  guarded_descriptor.store(file.descriptor, std::memory_order_relaxed);
  guarded.store(file.page, std::memory_order_release);
  // Once: a second time, a handler that was installed in between would be handed its own signals.
  static std::once_flag once;
  std::call_once(once, install);
}

void unguard_page() noexcept { guarded.store(nullptr, std::memory_order_release); }

}  // namespace nfe
