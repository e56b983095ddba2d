// The forms in which a program copies, and where each of them goes on to.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

// Every function of CANN's runtime interface that copies memory, as of CANN 9.
#define NFE_FORMS(X)               \
  X(aclrtMemcpy)                   \
  X(aclrtMemcpyAsync)              \
  X(aclrtMemcpyAsyncWithCondition) \
  X(aclrtMemcpyAsyncWithOffset)    \
  X(aclrtMemcpyAsyncWithDesc)      \
  X(aclrtMemcpy2d)                 \
  X(aclrtMemcpy2dAsync)            \
  X(aclrtMemcpyBatch)              \
  X(aclrtMemcpyBatchAsync)

// What their names have in common; a name that begins so and is none of them is a gap.
#define NFE_FORM_PREFIX "aclrtMemcpy"

enum nfe_form {
#define NFE_ENUMERATE(name) NFE_FORM_##name,
  NFE_FORMS(NFE_ENUMERATE)
#undef NFE_ENUMERATE
  NFE_FORM_COUNT
};

#define NFE_EXPORT __attribute__((visibility("default")))

// copies.c
void* nfe_own_definition(enum nfe_form form);

// lookup.c
enum nfe_form nfe_form_named(const char* name);  // NFE_FORM_COUNT: none of them
bool nfe_is_copy_name(const char* name);

// The definition that would be called if this library were not there; null: there is none (yet).
// Found once, then remembered.
extern _Atomic(void*) nfe_remembered_next[NFE_FORM_COUNT];
void* nfe_find_next_definition(enum nfe_form form);

static inline void* nfe_next_definition(enum nfe_form form) {
  void* const next = atomic_load_explicit(&nfe_remembered_next[form], memory_order_relaxed);
  return __builtin_expect(next != NULL, 1) ? next : nfe_find_next_definition(form);
}

void* nfe_own_dlsym(void);  // null where look-ups are not intercepted
// The first definition in the global scope, as a late binding would find it.
void* nfe_first_definition(const char* name);
