#include "policy.h"

#include <fnmatch.h>

#include <mutex>
#include <new>
#include <utility>

namespace nfe {
namespace {

std::mutex& policy_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

Policy& Policy::instance() {
  // Never destroyed: threads may ask while static objects are torn down.
  static Policy* const policy = new Policy;
  return *policy;
}

Policy::Policy() { policy_mutex(); }

void Policy::in_forked_child() noexcept { new (&policy_mutex()) std::mutex; }

void Policy::set(Mode mode, std::vector<Rule> rules) {
  const std::lock_guard<std::mutex> lock(policy_mutex());
  mode_.store(mode, std::memory_order_relaxed);
  rules_ = std::move(rules);
  version_.fetch_add(1, std::memory_order_release);
}

Policy::Refusal Policy::refusal_locked(const std::string& op) const {
  Refusal refusal = mode() == Mode::kStrict ? Refusal::kMode : Refusal::kNone;
  for (const Rule& rule : rules_) {
    if (fnmatch(rule.pattern.c_str(), op.c_str(), 0) == 0) {
      refusal = rule.allow ? Refusal::kNone : Refusal::kRule;
    }
  }
  return refusal;
}

Policy::Refusal Policy::refusal(const std::string& op) {
  const std::lock_guard<std::mutex> lock(policy_mutex());
  return refusal_locked(op);
}

bool Policy::decide(OpRecord& record) {
  const std::lock_guard<std::mutex> lock(policy_mutex());
  const bool refused = refusal_locked(record.full_name()) != Refusal::kNone;
  record.refused_by.store(version_.load(std::memory_order_relaxed) << 1 | (refused ? 1u : 0u),
                          std::memory_order_relaxed);
  return refused;
}

}  // namespace nfe
