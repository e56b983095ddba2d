// The page that this process writes now, across fork.
//
// Shared state: the current page and its generation.
//   Writers: open() and the fork handler. Readers: every counting thread.
//   Memory order: the page pointer is published with release and read with acquire; the generation
//   changes only in a forked child, where no other thread exists.
// On fork: the child lets go of the parent's page in the atfork handler (it never writes it) and
// makes a page of its own, at zero, at its first count; a child that counts nothing makes none.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "page_file.h"
#include "page_layout.h"

namespace nfe {

class PageWriter {
 public:
  static PageWriter& instance();

  // Makes the page if there is none. Throws Error("page"). A second call changes nothing.
  void open(const PageConfig& config);

  // The page to count in; null before open(). In a forked child that cannot make a file it is one
  // in private memory, which is said once. Never throws.
  Page* page() noexcept {
    Page* page = page_.load(std::memory_order_acquire);
    return page != nullptr ? page : page_after_fork();
  }

  // One more operator, or device tensor, in this process. A forked child that has no page yet makes
  // none for it: helpers run operators too, and leave no page behind. It is written when there is
  // one.
  void count_operator(std::size_t shard) noexcept {
    shard_of(shard).operators.fetch_add(1, std::memory_order_relaxed);
  }
  void count_device_allocation(std::size_t shard) noexcept {
    shard_of(shard).device_allocations.fetch_add(1, std::memory_order_relaxed);
  }

  // Changes when a forked child begins anew: what was remembered of the page is void then.
  std::uint32_t generation() const noexcept { return generation_; }

  // Path of the current page; empty when there is none.
  std::string path();

  // Armed time is counted between these two. The mode is written to the page of this process,
  // and to that of a forked child.
  void begin_armed_span() noexcept;
  void end_armed_span() noexcept;
  void set_mode(Mode mode, ModeSource source) noexcept;

  // Writes the number of watched operators (op_table.h) to the page.
  static void show_watched(Page& page) noexcept;

 private:
  PageWriter();
  static void in_forked_child() noexcept;
  Page* page_after_fork() noexcept;
  void publish(PageFile file) noexcept;
  ProcessShard& shard_of(std::size_t shard) noexcept {
    Page* page = page_.load(std::memory_order_acquire);
    return page != nullptr ? page->shards[shard % kProcessShards] : without_page_;
  }

  std::atomic<Page*> page_{nullptr};
  std::atomic<bool> remake_{false};  // a forked child that has not counted yet
  std::uint32_t generation_ = 1;
  ProcessShard without_page_{};
  PageFile file_;
  PageConfig config_;
  bool armed_ = false;
  Mode mode_ = Mode::kWarn;
  ModeSource mode_source_ = ModeSource::kDefault;
};

}  // namespace nfe
