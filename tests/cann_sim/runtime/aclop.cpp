// The older way to run an operator, by type name and attributes. op-plugin takes it when
// libopapi.so lacks a name; here it always fails, and says which operator and which names.
#include "failure.h"
#include "ledger.h"

namespace {

aclError refuse(const char* type) {
  const std::string missing = sim::missing_names();
  sim::fail("cann_sim: operator " + std::string(type) +
            " is not simulated; looked up in vain so far: " +
            (missing.empty() ? "nothing (not told without ASCEND_GLOBAL_LOG_LEVEL=2)" : missing));
  return kNotSupported;
}

}  // namespace

#define ACCEPTED(name)         \
  SIM_EXPORT aclError name() { \
    SIM_ENTER();               \
    return kOk;                \
  }

#define HANDLE(name)        \
  SIM_EXPORT void* name() { \
    SIM_COUNT();            \
    static char handle;     \
    return &handle;         \
  }

SIM_EXPORT aclError aclopCompileAndExecute(const char* type) {
  SIM_ENTER();
  return refuse(type);
}

SIM_EXPORT aclError aclopCompileAndExecuteV2(const char* type) {
  SIM_ENTER();
  return refuse(type);
}

HANDLE(aclopCreateAttr)
HANDLE(aclCreateTensorDesc)
HANDLE(aclCreateDataBuffer)
ACCEPTED(aclopDestroyAttr)
ACCEPTED(aclopSetAttrBool)
ACCEPTED(aclopSetAttrDataType)
ACCEPTED(aclopSetAttrFloat)
ACCEPTED(aclopSetAttrInt)
ACCEPTED(aclopSetAttrListBool)
ACCEPTED(aclopSetAttrListFloat)
ACCEPTED(aclopSetAttrListInt)
ACCEPTED(aclopSetAttrListListInt)
ACCEPTED(aclopSetAttrString)
ACCEPTED(aclDestroyDataBuffer)
ACCEPTED(aclDestroyTensorDesc)
ACCEPTED(aclSetTensorDescName)
ACCEPTED(aclSetTensorFormat)
ACCEPTED(aclSetTensorPlaceMent)
ACCEPTED(aclSetTensorShape)
ACCEPTED(aclGetTensorDescFormat)
ACCEPTED(aclGetTensorDescType)
ACCEPTED(aclGetTensorDescNumDims)
ACCEPTED(aclGetTensorDescDimV2)
