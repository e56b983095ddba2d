#include "failure.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "device.h"
#include "ledger.h"

namespace {

std::mutex guard;

std::string& last_failure() {
  static auto* text = new std::string;
  return *text;
}

std::set<std::string>& missing() {
  static auto* names = new std::set<std::string>;
  return *names;
}

bool is(const char* name, const char* value) {
  const char* set = std::getenv(name);
  return set != nullptr && std::strcmp(set, value) == 0;
}

// After one failed operator torch_npu's queue raises once, then drops every later operator in
// silence: tensors keep old memory, and the program goes on with garbage. Only without the
// queue does each failure reach its caller.
bool error_reaches_its_caller() {
  return is("TASK_QUEUE_ENABLE", "0") || is("ASCEND_LAUNCH_BLOCKING", "1") ||
         is("CANN_SIM_ON_FAILURE", "raise");
}

}  // namespace

namespace sim {

void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  if (!error_reaches_its_caller()) {
    std::fprintf(stderr, "cann_sim: the process ends here, before it computes with garbage; "
                         "TASK_QUEUE_ENABLE=0 turns this into an exception\n");
    std::fflush(nullptr);
    std::_Exit(70);
  }
  std::lock_guard<std::mutex> lock(guard);
  last_failure() = what;
}

std::string missing_names() {
  std::lock_guard<std::mutex> lock(guard);
  std::string all;
  for (const auto& name : missing()) all += (all.empty() ? "" : ",") + name;
  return all;
}

}  // namespace sim

// torch_npu logs through this function; at level 2, also which symbols it did not find.
SIM_EXPORT void aclAppLog(int, const char*, const char*, uint32_t, const char* format, ...) {
  if (std::strstr(format, "dlsym %s") == nullptr) return;
  va_list arguments;
  va_start(arguments, format);
  const char* name = va_arg(arguments, const char*);
  va_end(arguments);
  if (name == nullptr || std::strncmp(name, "aclnn", 5) != 0) return;
  const char* first_of_pair = std::strstr(name, "GetWorkspaceSize");
  std::lock_guard<std::mutex> lock(guard);
  missing().insert(first_of_pair == nullptr ? name : std::string(name, first_of_pair));
}

SIM_EXPORT const char* aclGetRecentErrMsg() {
  SIM_COUNT();
  // The caller reads it after the lock is gone; only this thread's own copy is safe.
  static thread_local std::string copy;
  std::lock_guard<std::mutex> lock(guard);
  copy = last_failure();
  last_failure().clear();
  return copy.c_str();
}

// Separated by commas; the text lives until this thread asks again.
SIM_EXPORT const char* cann_sim_missing_names() {
  static thread_local std::string copy;
  copy = sim::missing_names();
  return copy.c_str();
}

// For libopapi.so.
SIM_EXPORT void cann_sim_fail(const char* what) {
  sim::fail("cann_sim: " + std::string(what));
}

SIM_EXPORT void cann_sim_spend_kernel() {
  static const double seconds = sim::number_from_env("CANN_SIM_KERNEL_US", 0) * 1e-6;
  sim::spend(seconds);
}
