// Threads copy through the boundary library while a page is attached, another one in a forked
// child, and a gap is noticed. Prints what the parent and the child counted.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bindings.h"
#include "boundary.h"
#include "counters.h"
#include "forms.h"

int aclrtMemcpy(void* dst, size_t room, const void* src, size_t bytes, int kind);

static int copy_nothing(void) { return 0; }

_Atomic(void*) nfe_remembered_next[NFE_FORM_COUNT];
void* nfe_find_next_definition(enum nfe_form form) { return form == 0 ? (void*)copy_nothing : NULL; }
enum nfe_boundary_coverage nfe_bindings_coverage(void) { return NFE_BOUNDARY_FULL; }

enum { kThreads = 8, kCopies = 10000 };

static uint64_t words[2][4];
static uint32_t coverage[2];
static int child;

static void wake(void);

static void attach_page(void) {
  const struct nfe_boundary_target target = {NFE_BOUNDARY_VERSION, &words[child][0],
                                             &words[child][2], &coverage[child], wake};
  nfe_boundary_attach(&target);
}

// In the child, as the hook does: once, whoever comes first.
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void wake(void) { pthread_once(&once, attach_page); }

static void* copy_often(void* unused) {
  for (int i = 0; i < kCopies; ++i) aclrtMemcpy(NULL, 1, NULL, 1, i % 100 == 99 ? 2 : 1);
  nfe_note_gap(NFE_GAP_UNJUDGED);
  return unused;
}

static uint64_t copies_of_threads(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, copy_often, NULL);
  if (!child) attach_page();
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  if (coverage[child] != NFE_BOUNDARY_PARTIAL) abort();
  return words[child][2] + words[child][3];
}

int main(void) {
  const unsigned long in_parent = copies_of_threads();
  int ends[2];
  if (pipe(ends) != 0) return 1;
  if (fork() == 0) {
    child = 1;
    const unsigned long in_child = copies_of_threads();
    return write(ends[1], &in_child, sizeof in_child) == sizeof in_child ? 0 : 1;
  }
  close(ends[1]);
  unsigned long in_child = 0;
  int status = 1;
  if (read(ends[0], &in_child, sizeof in_child) != sizeof in_child) return 1;
  wait(&status);
  printf("%lu %lu\n", in_parent, in_child);
  return status;
}
