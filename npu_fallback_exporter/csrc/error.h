// What went wrong, and what the reader can do about it. Never thrown across hook_api.h.
#pragma once

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace nfe {

class Error : public std::runtime_error {
 public:
  // `reason` is the label of npu_fallback_arm_failures_total.
  Error(std::string reason, const std::string& what, std::string next_step)
      : std::runtime_error(what), reason_(std::move(reason)), next_step_(std::move(next_step)) {}

  const std::string& reason() const { return reason_; }
  const std::string& next_step() const { return next_step_; }

 private:
  std::string reason_;
  std::string next_step_;
};

inline std::string errno_text(int number = errno) { return std::strerror(number); }

}  // namespace nfe
