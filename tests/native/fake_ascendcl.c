// A runtime in which nothing is copied, for what the simulated one does not do: forms that call
// each other, forms that are missing or unknown, and calls that fail.
#include <stddef.h>
#include <stdint.h>

enum { kInvalid = 107000 };

// A copy of SIZE_MAX bytes fails.
int aclrtMemcpy(void* dst, size_t room, const void* src, size_t bytes, int kind) {
  (void)dst, (void)room, (void)src, (void)kind;
  return bytes == SIZE_MAX ? kInvalid : 0;
}

// Made of other calls, through the same table of imports as any caller's.
int aclrtMemcpy2d(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                  size_t height, int kind) {
  (void)dst_pitch, (void)src_pitch;
  for (size_t row = 0; row < height; ++row) aclrtMemcpy(dst, width, src, width, kind);
  return 0;
}

int aclrtMemcpyAsyncWithDesc(void* description, int kind, void* stream) {
  (void)description, (void)kind, (void)stream;
  return 0;
}

// Fails at the item that it is told to, as a batch's first size.
int aclrtMemcpyBatch(void** dsts, size_t* rooms, void** srcs, size_t* sizes, size_t count,
                     void* attributes, size_t* first_items, size_t attribute_count,
                     size_t* failed_item) {
  (void)dsts, (void)rooms, (void)srcs, (void)count, (void)attributes, (void)first_items;
  (void)attribute_count;
  if (sizes[0] >= 1000) return 0;
  *failed_item = sizes[0];
  return kInvalid;
}

// Of a CANN that is not known yet.
int aclrtMemcpySideways(void) { return 0; }
