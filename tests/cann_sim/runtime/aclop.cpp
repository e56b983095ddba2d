// The older way to run an operator, by type name and attributes. op-plugin takes it when
// libopapi.so lacks a name; here it always fails, and says which operator and which names.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "ledger.h"

namespace {

std::atomic<const char* (*)()> missing_names{nullptr};

aclError refuse(const char* type) {
  const auto names = missing_names.load();
  const char* missing = names == nullptr ? "" : names();
  std::fprintf(stderr,
               "cann_sim: operator %s is not simulated; aclnn names looked up in vain so far: %s\n",
               type, *missing == '\0' ? "none" : missing);
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

// libopapi.so tells how to ask for the names that op-plugin did not find.
SIM_EXPORT void cann_sim_set_missing_names(const char* (*function)()) { missing_names = function; }

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
