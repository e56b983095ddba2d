// The driver boundary: a library of its own, without PyTorch, that stands between the process and
// libascendcl.so and counts every copy between host and device, whoever asked for it.
//
// It must be loaded before libtorch_npu.so: through LD_PRELOAD, or with RTLD_GLOBAL, which sees
// less (bindings.c). In a process without libascendcl.so it does nothing.
//
// Counts go to counters of its own until the hook attaches the page's; what was counted before is
// added then. A forked child starts at zero, and calls `wake` at its first counted copy.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NFE_BOUNDARY_VERSION 1u

// How much of the boundary is seen. Values as in page_layout.h.
enum nfe_boundary_coverage {
  NFE_BOUNDARY_NONE = 0,     // no caller's copies come through here
  NFE_BOUNDARY_PARTIAL = 1,  // some may pass by, or one came through that could not be judged
  NFE_BOUNDARY_FULL = 2,     // every call and every look-up of the loaded objects comes through
};

// Indices of the counters. Values as in page_layout.h.
enum nfe_boundary_direction { NFE_BOUNDARY_D2H = 0, NFE_BOUNDARY_H2D = 1 };

// Where to count. All words are written with atomic operations, from any thread.
struct nfe_boundary_target {
  uint32_t version;     // NFE_BOUNDARY_VERSION
  uint64_t* bytes;      // two, by direction
  uint64_t* transfers;  // two, by direction
  uint32_t* coverage;   // kept up to date from now on; it may sink later, and never rises
  void (*wake)(void);   // in a forked child, at its first copy: attach new counters, or do nothing
};

// Counts in `target` from now on, in this process; 0 on success, -1 when the versions differ or a
// target is attached already.
int nfe_boundary_attach(const struct nfe_boundary_target* target);
typedef int (*nfe_boundary_attach_function)(const struct nfe_boundary_target*);

// What nfe_boundary_attach would say now.
enum nfe_boundary_coverage nfe_boundary_coverage(void);

// One line per binding of a loaded object: "here" or "elsewhere", the name, the object's path; then
// one per gap that was noticed. Returns the bytes it needs.
size_t nfe_boundary_describe(char* text, size_t text_bytes);

#ifdef __cplusplus
}
#endif
