// Blocks of code in which a thread refuses fallbacks, whatever the mode: forbid_fallback().
//
// State: per thread, so nothing is shared. Blocks nest; an operator falls back only if every block
// around it allows it.
// On fork: the thread that forked keeps its blocks.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace nfe {

class ForbidScope {
 public:
  // Begins a block in this thread. `allowed`: globs over full overload names, as fnmatch(3) reads.
  static void enter(std::vector<std::string> allowed);

  // Ends the innermost block of this thread; false when there is none.
  static bool leave() noexcept;

  // Whether this thread is inside a block. All that an event outside of blocks pays for.
  static bool any() noexcept { return innermost_ != nullptr; }

  // Whether a block around this thread refuses `op`.
  static bool refuses(const std::string& op);

 private:
  std::vector<std::string> allowed_;
  ForbidScope* outer_ = nullptr;

  static thread_local ForbidScope* innermost_;
};

}  // namespace nfe
