#include "page_writer.h"

#include <pthread.h>

#include <cstdio>
#include <exception>
#include <mutex>
#include <new>

#include "boundary_link.h"
#include "clock.h"
#include "error.h"
#include "notes.h"
#include "op_table.h"
#include "page_guard.h"
#include "policy.h"
#include "summary.h"

namespace nfe {
namespace {

// Guards the slow paths. Made anew in a forked child: a thread that does not exist there may
// have held it.
std::mutex& slow_path_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

PageWriter& PageWriter::instance() {
  // Never destroyed: threads may count while static objects are torn down.
  static PageWriter* const writer = new PageWriter;
  return *writer;
}

PageWriter::PageWriter() {
  slow_path_mutex();
  pthread_atfork(nullptr, nullptr, &PageWriter::in_forked_child);
}

void PageWriter::in_forked_child() noexcept {
  PageWriter& writer = instance();
  new (&slow_path_mutex()) std::mutex;
  OpTable::instance().in_forked_child();
  Policy::instance().in_forked_child();
  notes_in_forked_child();
  Summary::in_forked_child();
  if (writer.file_.page == nullptr) return;
  writer.page_.store(nullptr, std::memory_order_release);
  ++writer.generation_;
  unguard_page();
  release_page_file(writer.file_);
  writer.without_page_.operators.store(0, std::memory_order_relaxed);
  writer.without_page_.device_allocations.store(0, std::memory_order_relaxed);
  writer.remake_.store(true, std::memory_order_release);
}

void PageWriter::open(const PageConfig& config) {
  const std::lock_guard<std::mutex> lock(slow_path_mutex());
  if (file_.page != nullptr) return;
  config_ = config;
  PageFile file = create_page_file(config_);
  guard_page(file);
  publish(std::move(file));
}

void PageWriter::publish(PageFile file) noexcept {
  file_ = std::move(file);
  Header& header = file_.page->header;
  header.mode.store(static_cast<std::uint32_t>(mode_), std::memory_order_relaxed);
  header.mode_source.store(static_cast<std::uint32_t>(mode_source_), std::memory_order_relaxed);
  if (armed_) header.armed_since_ns.store(monotonic_ns(), std::memory_order_relaxed);
  show_watched(*file_.page);
  page_.store(file_.page, std::memory_order_release);
  file_.page->shards[0].operators.fetch_add(
      without_page_.operators.exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
  file_.page->shards[0].device_allocations.fetch_add(
      without_page_.device_allocations.exchange(0, std::memory_order_relaxed),
      std::memory_order_relaxed);
  attach_boundary(*file_.page);
}

void PageWriter::show_watched(Page& page) noexcept {
  const OpTable::Watched watched = OpTable::instance().watched();
  page.header.watched_with_cpu_kernel.store(watched.with_cpu_kernel, std::memory_order_relaxed);
  page.header.watched_without_cpu_kernel.store(watched.without_cpu_kernel,
                                               std::memory_order_relaxed);
}

Page* PageWriter::page_after_fork() noexcept {
  // Cleared after the page is published: who sees it cleared sees the page, if there is one.
  if (!remake_.load(std::memory_order_acquire)) return page_.load(std::memory_order_acquire);
  const std::lock_guard<std::mutex> lock(slow_path_mutex());
  if (!remake_.load(std::memory_order_relaxed)) return file_.page;
  PageFile file;
  try {
    file = create_page_file(config_);
    guard_page(file);
  } catch (const Error& error) {
    std::fprintf(stderr, "npu-fallback-exporter: this process counts nothing: %s: %s\n",
                 error.what(), error.next_step().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "npu-fallback-exporter: this process counts nothing: %s\n", error.what());
  }
  // Without a file the hook goes on all the same: strict mode is a promise.
  if (file.page == nullptr) file = create_private_page(config_);
  if (file.page != nullptr) publish(std::move(file));
  remake_.store(false, std::memory_order_release);  // one attempt: what failed is said once
  return file_.page;
}

std::string PageWriter::path() {
  const std::lock_guard<std::mutex> lock(slow_path_mutex());
  return file_.path.empty() || file_.page == nullptr ? std::string() : file_.path;
}

void PageWriter::begin_armed_span() noexcept {
  const std::lock_guard<std::mutex> lock(slow_path_mutex());
  if (armed_) return;
  armed_ = true;
  if (file_.page == nullptr) return;
  show_watched(*file_.page);
  file_.page->header.armed_since_ns.store(monotonic_ns(), std::memory_order_relaxed);
}

void PageWriter::end_armed_span() noexcept {
  const std::lock_guard<std::mutex> lock(slow_path_mutex());
  if (!armed_) return;
  armed_ = false;
  if (file_.page == nullptr) return;
  Header& header = file_.page->header;
  const std::uint64_t now = monotonic_ns();
  const std::uint64_t since = header.armed_since_ns.load(std::memory_order_relaxed);
  // In this order a reader between the two stores sees too little for a moment, never too much;
  // totals that went up stay up in the exporter.
  header.armed_since_ns.store(0, std::memory_order_relaxed);
  header.armed_ns.fetch_add(now - since, std::memory_order_relaxed);
  header.last_seen_ns.store(now, std::memory_order_relaxed);
}

void PageWriter::set_mode(Mode mode, ModeSource source) noexcept {
  const std::lock_guard<std::mutex> lock(slow_path_mutex());
  mode_ = mode;
  mode_source_ = source;
  if (file_.page == nullptr) return;
  file_.page->header.mode.store(static_cast<std::uint32_t>(mode), std::memory_order_relaxed);
  file_.page->header.mode_source.store(static_cast<std::uint32_t>(source),
                                       std::memory_order_relaxed);
}

}  // namespace nfe
