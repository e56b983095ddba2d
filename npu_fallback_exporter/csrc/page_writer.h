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

  // The page to count in; null when there is none and none can be made. Never throws.
  Page* page() noexcept {
    Page* page = page_.load(std::memory_order_acquire);
    return page != nullptr ? page : page_after_fork();
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

  std::atomic<Page*> page_{nullptr};
  std::atomic<bool> remake_{false};  // a forked child that has not counted yet
  std::uint32_t generation_ = 1;
  PageFile file_;
  PageConfig config_;
  bool armed_ = false;
  Mode mode_ = Mode::kWarn;
  ModeSource mode_source_ = ModeSource::kDefault;
};

}  // namespace nfe
