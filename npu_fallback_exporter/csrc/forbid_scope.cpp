#include "forbid_scope.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

namespace nfe {

thread_local ForbidScope* ForbidScope::innermost_ = nullptr;

void ForbidScope::enter(std::vector<std::string> allowed) {
  auto scope = std::make_unique<ForbidScope>();
  scope->allowed_ = std::move(allowed);
  scope->outer_ = innermost_;
  innermost_ = scope.release();
}

bool ForbidScope::leave() noexcept {
  const std::unique_ptr<ForbidScope> scope(innermost_);
  if (scope == nullptr) return false;
  innermost_ = scope->outer_;
  return true;
}

bool ForbidScope::refuses(const std::string& op) {
  const auto matches = [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), op.c_str(), 0) == 0;
  };
  for (const ForbidScope* scope = innermost_; scope != nullptr; scope = scope->outer_) {
    if (std::none_of(scope->allowed_.begin(), scope->allowed_.end(), matches)) return true;
  }
  return false;
}

}  // namespace nfe
