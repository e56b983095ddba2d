// Functions that torch_npu needs to find and that have nothing to do on a simulated device.
#include <cstring>

#include "ledger.h"

#define ACCEPTED(name)         \
  SIM_EXPORT aclError name() { \
    SIM_ENTER();               \
    return kOk;                \
  }

#define REFUSED(name, error)   \
  SIM_EXPORT aclError name() { \
    SIM_ENTER();               \
    return error;              \
  }

// Callers keep the handle and give it back; they never look inside.
#define HANDLE(name)        \
  SIM_EXPORT void* name() { \
    SIM_COUNT();            \
    static char handle;     \
    return &handle;         \
  }

ACCEPTED(aclrtSetStreamFailureMode)
ACCEPTED(aclrtSetOpWaitTimeout)
ACCEPTED(aclrtSetOpExecuteTimeOut)
ACCEPTED(aclrtSetDeviceSatMode)
ACCEPTED(aclrtSetStreamOverflowSwitch)
ACCEPTED(aclrtSetStreamAttribute)
ACCEPTED(aclrtCtxSetSysParamOpt)
ACCEPTED(aclrtSetSysParamOpt)
ACCEPTED(aclrtDeviceEnablePeerAccess)
ACCEPTED(aclrtDeviceTaskAbort)
ACCEPTED(aclrtMemUceRepair)
ACCEPTED(aclrtCmoAsync)
ACCEPTED(aclrtGetLastError)
ACCEPTED(aclrtPeekAtLastError)
ACCEPTED(aclrtRepairError)
ACCEPTED(aclrtHostRegisterV2)
ACCEPTED(aclrtHostUnregister)
ACCEPTED(aclrtSetDeviceResLimit)
ACCEPTED(aclrtResetDeviceResLimit)
ACCEPTED(aclrtSetStreamResLimit)
ACCEPTED(aclrtResetStreamResLimit)
ACCEPTED(aclrtUseStreamResInCurrentThread)
ACCEPTED(aclrtUnuseStreamResInCurrentThread)
ACCEPTED(aclSetCompileopt)
ACCEPTED(aclmdlInitDump)
ACCEPTED(aclmdlSetDump)
ACCEPTED(aclmdlFinalizeDump)

ACCEPTED(aclprofInit)
ACCEPTED(aclprofStart)
ACCEPTED(aclprofStop)
ACCEPTED(aclprofFinalize)
ACCEPTED(aclprofSetConfig)
ACCEPTED(aclprofMarkEx)
ACCEPTED(aclprofWarmup)
ACCEPTED(aclprofRegisterDeviceCallback)
ACCEPTED(aclprofGetStepTimestamp)
ACCEPTED(aclprofDestroyConfig)
ACCEPTED(aclprofDestroyStepInfo)
HANDLE(aclprofCreateConfig)
HANDLE(aclprofCreateStepInfo)

ACCEPTED(MsprofRegisterCallback)
ACCEPTED(MsprofReportApi)
ACCEPTED(MsprofReportCompactInfo)
ACCEPTED(MsprofReportAdditionalInfo)
SIM_EXPORT uint64_t MsprofSysCycleTime() { return 0; }
SIM_EXPORT uint64_t MsprofGetHashId() { return 0; }

// No graph capture, no sharing between processes, no hand-written kernels.
REFUSED(aclmdlRICaptureBegin, kNotSupported)
REFUSED(aclmdlRICaptureEnd, kNotSupported)
REFUSED(aclmdlRICaptureThreadExchangeMode, kNotSupported)
REFUSED(aclrtIpcGetEventHandle, kNotSupported)
REFUSED(aclrtIpcOpenEventHandle, kNotSupported)
REFUSED(aclrtIpcMemGetExportKey, kNotSupported)
REFUSED(aclrtIpcMemSetImportPid, kNotSupported)
REFUSED(aclrtIpcMemImportByKey, kNotSupported)
REFUSED(aclrtIpcMemClose, kNotSupported)
REFUSED(aclrtMemExportToShareableHandle, kNotSupported)
REFUSED(aclrtMemSetPidToShareableHandle, kNotSupported)
REFUSED(aclrtMemImportFromShareableHandle, kNotSupported)
REFUSED(aclrtBinaryGetFunction, kNotSupported)
REFUSED(aclrtBinaryLoadFromData, kNotSupported)
REFUSED(aclrtGetFunctionAddr, kNotSupported)
REFUSED(rtDevBinaryRegister, kNotSupported)
REFUSED(rtFunctionRegister, kNotSupported)
REFUSED(rtKernelLaunch, kNotSupported)
REFUSED(rtGetC2cCtrlAddr, kNotSupported)

// torch_npu takes this function's presence for graph support and asks it before every copy.
SIM_EXPORT aclError aclmdlRICaptureGetInfo(void*, int* status, void** model) {
  SIM_ENTER();
  *status = 0;
  if (model != nullptr) *model = nullptr;
  return kOk;
}

SIM_EXPORT aclError aclrtSetOpExecuteTimeOutV2(uint64_t wanted, uint64_t* actual) {
  SIM_ENTER();
  *actual = wanted;
  return kOk;
}

SIM_EXPORT aclError aclrtHostRegister(void* address, uint64_t, int, void** device_address) {
  SIM_ENTER();
  *device_address = address;
  return kOk;
}

SIM_EXPORT aclError aclrtGetStreamOverflowSwitch(void*, uint32_t* flag) {
  SIM_ENTER();
  *flag = 0;
  return kOk;
}

SIM_EXPORT aclError aclrtGetSysParamOpt(int, int64_t* value) {
  SIM_ENTER();
  *value = 0;
  return kOk;
}

constexpr uint32_t kCores = 20;

SIM_EXPORT aclError aclrtGetDeviceResLimit(int32_t, int, uint32_t* value) {
  SIM_ENTER();
  *value = kCores;
  return kOk;
}

SIM_EXPORT aclError aclrtGetStreamResLimit(void*, int, uint32_t* value) {
  SIM_ENTER();
  *value = kCores;
  return kOk;
}

SIM_EXPORT aclError aclrtGetResInCurrentThread(int, uint32_t* value) {
  SIM_ENTER();
  *value = kCores;
  return kOk;
}

SIM_EXPORT aclError aclrtGetDeviceUtilizationRate(int32_t, int32_t* rates) {
  SIM_ENTER();
  for (int i = 0; i < 4; ++i) rates[i] = 0;
  return kOk;
}

SIM_EXPORT aclError aclrtGetMemUceInfo(int32_t, void*, size_t, size_t* found) {
  SIM_ENTER();
  *found = 0;
  return kOk;
}

SIM_EXPORT aclError aclrtGetMemUsageInfo(uint32_t, void*, size_t, size_t* found) {
  SIM_ENTER();
  *found = 0;
  return kOk;
}

SIM_EXPORT aclError aclGetCannAttributeList(const int** list, size_t* count) {
  SIM_ENTER();
  *list = nullptr;
  *count = 0;
  return kOk;
}

SIM_EXPORT aclError aclGetCannAttribute(int, int32_t* value) {
  SIM_ENTER();
  *value = 0;
  return kOk;
}

// Just-in-time compilation off is what sends operators to libopapi.so.
constexpr char kJitCompile[] = "disable";

SIM_EXPORT size_t aclGetCompileoptSize(int) {
  SIM_COUNT();
  return sizeof(kJitCompile);
}

SIM_EXPORT aclError aclGetCompileopt(int, char* value, size_t room) {
  SIM_ENTER();
  std::strncpy(value, kJitCompile, room);
  return kOk;
}
