// Shared state: the target in use. Until the hook attaches one, and again in a forked child, it is
// `waiting`, whose counters are this library's own.
//   Writers: attach() and the fork handler. Readers: every copying thread.
//   Memory order: sequential around `waiting`, so that no count stays behind in it: a thread that
//   counts there looks at the target again afterwards; either it sees the new one, and moves the
//   counts itself, or its count came before the target's exchange, and attach() moves it.
// On fork: the child lets go of the parent's page at once and never writes it.
#include "counters.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "bindings.h"
#include "boundary.h"
#include "forms.h"

enum { kDirections = 2 };

static uint64_t waiting_bytes[kDirections];
static uint64_t waiting_transfers[kDirections];
static uint32_t waiting_coverage;
static const struct nfe_boundary_target waiting = {
    NFE_BOUNDARY_VERSION, waiting_bytes, waiting_transfers, &waiting_coverage, NULL};

static struct nfe_boundary_target attached;  // written while nobody counts in it
static _Atomic(const struct nfe_boundary_target*) target = &waiting;
static _Atomic(unsigned) gaps;
static void (*wake)(void);  // null before the first fork: who attaches needs no waking

static inline void add(const struct nfe_boundary_target* to, int direction, uint64_t bytes,
                       uint64_t transfers, int order) {
  __atomic_fetch_add(&to->bytes[direction], bytes, order);
  __atomic_fetch_add(&to->transfers[direction], transfers, order);
}

static void move_waiting_counts(const struct nfe_boundary_target* to) {
  for (int direction = 0; direction < kDirections; ++direction) {
    const uint64_t bytes = __atomic_exchange_n(&waiting_bytes[direction], 0, __ATOMIC_SEQ_CST);
    const uint64_t transfers =
        __atomic_exchange_n(&waiting_transfers[direction], 0, __ATOMIC_SEQ_CST);
    if (transfers != 0 || bytes != 0) add(to, direction, bytes, transfers, __ATOMIC_RELAXED);
  }
}

static void in_forked_child(void) {
  atomic_store(&target, &waiting);
  wake = attached.wake;
  for (int direction = 0; direction < kDirections; ++direction) {
    waiting_bytes[direction] = 0;
    waiting_transfers[direction] = 0;
  }
}

// So early that a hook which unmaps the parent's page in the child does so after this.
__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(NULL, NULL, in_forked_child);
}

static __attribute__((noinline)) void count_while_waiting(int direction, uint64_t bytes,
                                                          uint64_t transfers) {
  add(&waiting, direction, bytes, transfers, __ATOMIC_SEQ_CST);
  if (wake != NULL) wake();
  const struct nfe_boundary_target* now = atomic_load(&target);
  if (now != &waiting) move_waiting_counts(now);
}

void nfe_count(int direction, uint64_t bytes, uint64_t transfers) {
  const struct nfe_boundary_target* to = atomic_load(&target);
  if (__builtin_expect(to == &waiting, 0)) {
    count_while_waiting(direction, bytes, transfers);
  } else {
    add(to, direction, bytes, transfers, __ATOMIC_RELAXED);
  }
}

// Coverage only sinks: a thread that computed more, earlier, must not overwrite it.
static void lower_coverage(const struct nfe_boundary_target* of, uint32_t to) {
  uint32_t now = __atomic_load_n(of->coverage, __ATOMIC_SEQ_CST);
  while (now > to && !__atomic_compare_exchange_n(of->coverage, &now, to, false, __ATOMIC_SEQ_CST,
                                                  __ATOMIC_SEQ_CST)) {
  }
}

void nfe_note_gap(enum nfe_gap gap) {
  if ((atomic_fetch_or(&gaps, gap) & gap) != 0) return;
  lower_coverage(atomic_load(&target), NFE_BOUNDARY_PARTIAL);
}

unsigned nfe_gaps(void) { return atomic_load(&gaps); }

NFE_EXPORT enum nfe_boundary_coverage nfe_boundary_coverage(void) {
  const enum nfe_boundary_coverage bound = nfe_bindings_coverage();
  return bound == NFE_BOUNDARY_FULL && nfe_gaps() != 0 ? NFE_BOUNDARY_PARTIAL : bound;
}

NFE_EXPORT int nfe_boundary_attach(const struct nfe_boundary_target* to) {
  if (to->version != NFE_BOUNDARY_VERSION || atomic_load(&target) != &waiting) return -1;
  attached = *to;
  __atomic_store_n(attached.coverage, nfe_boundary_coverage(), __ATOMIC_SEQ_CST);
  atomic_store(&target, &attached);
  // Noticed since coverage was asked, by a thread that could not know of this target yet.
  if (nfe_gaps() != 0) lower_coverage(&attached, NFE_BOUNDARY_PARTIAL);
  move_waiting_counts(&attached);
  return 0;
}
