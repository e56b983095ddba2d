// A library that looks names up relative to itself, and one that binds a copy when it is loaded.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int aclrtMemcpy(void* dst, size_t room, const void* src, size_t bytes, int kind);
void aclrtHint(void) {}

int bound_copy(size_t bytes, int kind) { return aclrtMemcpy(NULL, bytes, NULL, bytes, kind); }

// Found only by a look-up whose caller is this library: its own definition comes after the
// global scope's, and "next" is what comes after itself.
const char* own_name(void) { return "caller"; }
void* look_up_own(void) { return dlsym(RTLD_DEFAULT, "own_name"); }
void* look_up_next_own(void) { return dlsym(RTLD_NEXT, "own_name"); }
void* look_up_next_malloc(void) { return dlsym(RTLD_NEXT, "malloc"); }
