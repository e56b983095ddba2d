// Refusing an operator before anything of it is copied or computed.
#pragma once

#include <cstdint>
#include <string>

#include "forbid_scope.h"
#include "op_table.h"
#include "page_layout.h"
#include "policy.h"

namespace nfe {

// Whether `record` must not run on the host now, in this thread.
inline bool is_refused(OpRecord& record) {
  if (Policy::instance().refuses(record)) return true;
  return ForbidScope::any() && ForbidScope::refuses(record.full_name());
}

// The same of an operator that has no record, as in a process that has no page.
bool is_refused(const std::string& op);

// Raises the error that says who refuses `op`, and how to allow it. `reason`: why it would run on
// the host.
[[noreturn]] void refuse(const std::string& op, Kind kind, std::uint32_t npu,
                         const std::string& reason);

// Counts a refusal, ours or torch_npu's own, as blocked.
void count_refusal(OpRecord& record, Kind kind, std::uint32_t npu) noexcept;

// Returns when the operator may run on the host; else counts it as blocked, and raises.
inline void refuse_unless_allowed(OpRecord& record, Kind kind, std::uint32_t npu,
                                  const char* reason) {
  if (!is_refused(record)) return;
  count_refusal(record, kind, npu);
  refuse(record.full_name(), kind, npu, reason);
}

}  // namespace nfe
