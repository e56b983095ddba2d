// Asking Python, from inside an operator, where that operator was called from.
//
// Reading Python frames needs the GIL, and the thread that runs an operator has usually let go of
// it. It must not wait for it here: C++ code further up its stack may hold a lock that the holder
// of the GIL waits for. So the question goes to a thread of its own, made for it, which may wait as
// long as it has to; the operator's thread stands still until the answer is there, but no longer
// than patience, and then runs on without one. A thread that holds the GIL asks at once.
//
// Shared state: the callback, and how many questions are open.
//   Writers: set_callback(), from Python. Readers: threads at the first sights of an operator, under
//   one mutex. set_callback(null) returns when no question is open any more (or patience has
//   passed), so that Python can end afterwards.
// On fork: threads that wait for answers do not exist in the child; mutex and number begin anew.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "hook_api.h"

namespace nfe {

class CallSites {
 public:
  // Set by tests alone, before any thread asks.
  static inline std::chrono::milliseconds patience{100};

  enum class Answer { kNone, kKnown, kNew, kTooLate };

  static CallSites& instance();

  void set_callback(nfe_sight_callback callback) noexcept;

  // Fills in the fields of `sight` that belong to the thread, asks, and puts the answer, the
  // innermost user frame, into `site`. Never throws, never waits longer than patience.
  Answer ask(nfe_sight sight, const std::string& op, const std::string& arguments,
             std::string& site) noexcept;

 private:
  CallSites();
  static void in_forked_child() noexcept;
};

}  // namespace nfe
