// Why the last call failed, and which operators op-plugin missed: a failure names its cause.
#pragma once

#include <string>

namespace sim {

// Writes the line to stderr and keeps it for torch_npu's own error text.
void fail(const std::string& what);

// The aclnn names that op-plugin looked up in vain so far, as far as it told.
std::string missing_names();

}  // namespace sim
