// Which operators may fall back: the mode in force and the rules on operators.
//
// Shared state: mode, rules and their version.
//   Writers: set(), from any thread, under a mutex. Readers: every thread that takes a fallback.
//   Memory order: the version is bumped with release after the rules changed; a reader that sees
//   an older version than the one in its memory of a decision decides anew under the mutex.
// On fork: the child keeps the parent's policy; the mutex is made anew.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "op_table.h"
#include "page_layout.h"

namespace nfe {

class Policy {
 public:
  struct Rule {
    std::string pattern;  // glob over full overload names, as fnmatch(3) reads it
    bool allow = true;    // else: block, in every mode
  };

  // Who refuses an operator: the mode, or a rule that blocks it.
  enum class Refusal { kNone, kMode, kRule };

  static Policy& instance();

  // Where several rules match, the last one decides.
  void set(Mode mode, std::vector<Rule> rules);

  Mode mode() const noexcept { return mode_.load(std::memory_order_relaxed); }

  // True when `record` must not fall back now.
  bool refuses(OpRecord& record) {
    const std::uint32_t known = record.refused_by.load(std::memory_order_relaxed);
    if (known >> 1 == version_.load(std::memory_order_acquire)) return (known & 1) != 0;
    return decide(record);
  }

  // Who refuses the operator of that name now. Slow: for error texts, and where nothing is counted.
  Refusal refusal(const std::string& op);

  // Only for the fork handler.
  void in_forked_child() noexcept;

 private:
  Policy();
  bool decide(OpRecord& record);
  Refusal refusal_locked(const std::string& op) const;

  std::atomic<Mode> mode_{Mode::kWarn};
  std::atomic<std::uint32_t> version_{1};
  std::vector<Rule> rules_;
};

}  // namespace nfe
