// A condition variable that waits by the monotonic clock, which nobody sets back.
//
// As std::condition_variable does, but with functions that glibc 2.28 has too.
#pragma once

#include <pthread.h>
#include <time.h>

#include <chrono>
#include <mutex>

namespace nfe {

class PatientCondition {
 public:
  PatientCondition() noexcept {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition_, &attributes);
    pthread_condattr_destroy(&attributes);
  }
  PatientCondition(const PatientCondition&) = delete;
  PatientCondition& operator=(const PatientCondition&) = delete;

  void notify_all() noexcept { pthread_cond_broadcast(&condition_); }

  // Waits until `holds()`, but no longer than `patience`; returns what it then says.
  template <typename Predicate>
  bool wait_for(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds patience,
                Predicate holds) {
    timespec until{};
    clock_gettime(CLOCK_MONOTONIC, &until);
    const long nanoseconds = until.tv_nsec + static_cast<long>(patience.count()) % 1000 * 1'000'000;
    until.tv_sec += static_cast<time_t>(patience.count() / 1000 + nanoseconds / 1'000'000'000);
    until.tv_nsec = nanoseconds % 1'000'000'000;
    while (!holds()) {
      if (pthread_cond_timedwait(&condition_, lock.mutex()->native_handle(), &until) != 0) {
        return holds();
      }
    }
    return true;
  }

 private:
  pthread_cond_t condition_;
};

}  // namespace nfe
