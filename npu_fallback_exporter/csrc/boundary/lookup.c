// Finding definitions, and standing in the way of those who look them up.
//
// torch_npu binds two of the forms when it is loaded, and looks the others up with dlsym() on a
// handle of libascendcl.so, which no definition elsewhere can precede. So dlsym() itself is defined
// here: asked for a copying function it returns ours, provided that the runtime has one; anything
// else is handed on by a jump, so that the C library sees the true caller, which RTLD_NEXT and
// RTLD_DEFAULT depend on.
//
// Only with LD_PRELOAD does this dlsym() come before the C library's.
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "counters.h"
#include "forms.h"

static const char* const names[NFE_FORM_COUNT] = {
#define NFE_NAME(name) [NFE_FORM_##name] = #name,
    NFE_FORMS(NFE_NAME)
#undef NFE_NAME
};

bool nfe_is_copy_name(const char* name) {
  return strncmp(name, NFE_FORM_PREFIX, sizeof NFE_FORM_PREFIX - 1) == 0;
}

enum nfe_form nfe_form_named(const char* name) {
  int form = 0;
  while (form < NFE_FORM_COUNT && strcmp(name, names[form]) != 0) ++form;
  return (enum nfe_form)form;
}

typedef void* lookup_function(void*, const char*);

// The version under which the C library has had dlsym() from its first release for a machine on;
// newer ones keep it.
#if defined(__x86_64__)
#define OLDEST_DLSYM "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLDEST_DLSYM "GLIBC_2.17"
#endif

#ifdef OLDEST_DLSYM

static _Atomic(lookup_function*) c_library_dlsym;

static lookup_function* find_c_library_dlsym(void) {
  // dlvsym, because it is not defined here.
  lookup_function* const found = (lookup_function*)dlvsym(RTLD_NEXT, "dlsym", OLDEST_DLSYM);
  atomic_store_explicit(&c_library_dlsym, found, memory_order_relaxed);
  return found;
}

static inline lookup_function* next_dlsym(void) {
  lookup_function* const found = atomic_load_explicit(&c_library_dlsym, memory_order_relaxed);
  return __builtin_expect(found != NULL, 1) ? found : find_c_library_dlsym();
}

#else  // look-ups are not intercepted, and coverage is never full

static inline lookup_function* next_dlsym(void) { return dlsym; }

#endif

// The handle keeps the runtime loaded: functions of it are remembered.
static void* find_in_runtime(const char* name) {
  void* const runtime = dlopen("libascendcl.so", RTLD_LAZY | RTLD_NOLOAD);
  return runtime == NULL ? NULL : next_dlsym()(runtime, name);
}

_Atomic(void*) nfe_remembered_next[NFE_FORM_COUNT];

void* nfe_find_next_definition(enum nfe_form form) {
  void* next = next_dlsym()(RTLD_NEXT, names[form]);
  // Python loads torch_npu, and the runtime with it, for itself only: mostly it is not "next".
  if (next == NULL) next = find_in_runtime(names[form]);
  if (next != NULL) {
    atomic_store_explicit(&nfe_remembered_next[form], next, memory_order_relaxed);
  }
  return next;
}

void* nfe_first_definition(const char* name) { return next_dlsym()(RTLD_DEFAULT, name); }

#ifndef OLDEST_DLSYM

void* nfe_own_dlsym(void) { return NULL; }

#else

#if defined(__has_attribute)
#if __has_attribute(musttail)
#define HAND_ON(call) __attribute__((musttail)) return call
#endif
#endif
#ifndef HAND_ON
#define HAND_ON(call) return call  // a jump too, at the -O2 that this is compiled with
#endif

// In the global scope, our definition is found although the runtime has none behind it. Then nothing
// must be found: after this library there is nothing, and dlerror() says so, as callers rely on.
static void* find_nothing(enum nfe_form form) { return next_dlsym()(RTLD_NEXT, names[form]); }

// The last look-up is the caller's own, so that dlerror() afterwards is about that one.
__attribute__((noinline)) static void* find_through(void* handle, enum nfe_form form) {
  void* const own = nfe_own_definition(form);
  void* const next = nfe_next_definition(form);
  void* const found = next_dlsym()(handle, names[form]);
  if (found == NULL) return NULL;
  if (found == own && next == NULL) return find_nothing(form);
  if (found == own || found == next) return own;
  nfe_note_gap(NFE_GAP_OTHER_COPY);
  return found;
}

__attribute__((noinline)) static void note_unknown_form(const char* name) {
  if (find_in_runtime(name) != NULL) nfe_note_gap(NFE_GAP_UNKNOWN_FORM);
}

static void* look_up(void* handle, const char* name) {
  if (__builtin_expect(name != NULL && name[0] == 'a' && nfe_is_copy_name(name), 0)) {
    const enum nfe_form form = nfe_form_named(name);
    if (form == NFE_FORM_COUNT) {
      note_unknown_form(name);
    } else if (handle == RTLD_DEFAULT) {
      if (nfe_next_definition(form) == NULL) return find_nothing(form);
    } else if (handle != RTLD_NEXT) {  // who asks for the next one is called by us, or calls us
      return find_through(handle, form);
    }
  }
  HAND_ON(next_dlsym()(handle, name));
}

NFE_EXPORT extern __typeof__(look_up) dlsym __attribute__((alias("look_up")));

void* nfe_own_dlsym(void) { return (void*)look_up; }

#endif
