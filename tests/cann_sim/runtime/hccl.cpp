// Collectives: the settings are accepted, a communicator is never promised.
#include "ledger.h"

constexpr int kHcclNotSupported = 5;

// Part of torch_npu's deterministic setting, called at the first operator.
SIM_EXPORT int HcclSetConfig(int, int) { return 0; }

#define NO_COLLECTIVES(name) \
  SIM_EXPORT int name() { return kHcclNotSupported; }

NO_COLLECTIVES(HcclGetRootInfo)
NO_COLLECTIVES(HcclCommInitRootInfo)
NO_COLLECTIVES(HcclCommInitAll)
NO_COLLECTIVES(HcclCommDestroy)
NO_COLLECTIVES(HcclAllReduce)
NO_COLLECTIVES(HcclAllGather)
NO_COLLECTIVES(HcclReduceScatter)
NO_COLLECTIVES(HcclBroadcast)
NO_COLLECTIVES(HcclSend)
NO_COLLECTIVES(HcclRecv)
