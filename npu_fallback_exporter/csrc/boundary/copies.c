// The functions that callers reach instead of libascendcl's: each calls the next definition and
// counts what succeeded. Nothing about a call is changed, and the device is never asked anything.
#include <stdint.h>

#include "counters.h"
#include "boundary.h"
#include "forms.h"

typedef int acl_error;
typedef void* acl_stream;

enum { kSuccess = 0, kNotSupported = 207000 };  // ACL_ERROR_RT_FEATURE_NOT_SUPPORT

// aclrtMemcpyKind. By address (4) means that the runtime finds out from the addresses; asking it
// the same would be a call of the device.
enum {
  kHostToHost = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kHostToBufferToDevice = 5,
  kWithinDevice = 6,
  kBetweenDevices = 7,
};

// aclrtMemLocationType
enum { kOnHost = 0, kOnDevice = 1, kOnUnregisteredHost = 2, kOnHostNode = 4 };

struct location {
  uint32_t id;
  int type;
};

struct batch_attribute {  // aclrtMemcpyBatchAttr
  struct location dst;
  struct location src;
  uint8_t reserved[16];
};

enum { kNoTransfer = -1, kUnjudged = -2 };  // beside enum nfe_boundary_direction

static int direction_of_kind(int kind) {
  switch (kind) {
    case kHostToDevice:
    case kHostToBufferToDevice:
      return NFE_BOUNDARY_H2D;
    case kDeviceToHost:
      return NFE_BOUNDARY_D2H;
    case kHostToHost:
    case kDeviceToDevice:
    case kWithinDevice:
    case kBetweenDevices:
      return kNoTransfer;
    default:
      return kUnjudged;
  }
}

static bool is_host(int type) {
  return type == kOnHost || type == kOnUnregisteredHost || type == kOnHostNode;
}

static int direction_between(int source, int target) {
  if (source == kOnDevice && is_host(target)) return NFE_BOUNDARY_D2H;
  if (is_host(source) && target == kOnDevice) return NFE_BOUNDARY_H2D;
  const bool known = (source == kOnDevice || is_host(source)) &&
                     (target == kOnDevice || is_host(target));
  return known ? kNoTransfer : kUnjudged;
}

// A runtime may build one form on another; the inner call is not a copy of its own.
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));

// Calls the next definition of `name`, which has the type of `self`; `error` is what it returned.
#define CALL_NEXT(self, name, arguments)                               \
  __typeof__(&self) const next = nfe_next_definition(NFE_FORM_##name); \
  if (__builtin_expect(next == NULL, 0)) return kNotSupported;         \
  if (__builtin_expect(inside, 0)) return next arguments;              \
  inside = true;                                                       \
  const acl_error error = next arguments;                              \
  inside = false

static inline acl_error counted(acl_error error, int kind, uint64_t bytes) {
  if (error != kSuccess) return error;
  const int direction = direction_of_kind(kind);
  if (direction >= 0) {
    nfe_count(direction, bytes, 1);
  } else if (direction == kUnjudged) {
    nfe_note_gap(NFE_GAP_UNJUDGED);
  }
  return error;
}

static acl_error copy(void* dst, size_t room, const void* src, size_t bytes, int kind) {
  CALL_NEXT(copy, aclrtMemcpy, (dst, room, src, bytes, kind));
  return counted(error, kind, bytes);
}

static acl_error copy_async(void* dst, size_t room, const void* src, size_t bytes, int kind,
                            acl_stream stream) {
  CALL_NEXT(copy_async, aclrtMemcpyAsync, (dst, room, src, bytes, kind, stream));
  return counted(error, kind, bytes);
}

static acl_error copy_conditionally(void* dst, size_t room, const void* src, size_t bytes, int kind,
                                    acl_stream stream) {
  CALL_NEXT(copy_conditionally, aclrtMemcpyAsyncWithCondition,
            (dst, room, src, bytes, kind, stream));
  return counted(error, kind, bytes);
}

static acl_error copy_at_offset(void** dst, size_t room, size_t dst_offset, const void** src,
                                size_t bytes, size_t src_offset, int kind, acl_stream stream) {
  CALL_NEXT(copy_at_offset, aclrtMemcpyAsyncWithOffset,
            (dst, room, dst_offset, src, bytes, src_offset, kind, stream));
  return counted(error, kind, bytes);
}

// The size is in a descriptor whose format is the driver's own.
static acl_error copy_described(void* description, int kind, acl_stream stream) {
  CALL_NEXT(copy_described, aclrtMemcpyAsyncWithDesc, (description, kind, stream));
  if (error == kSuccess && direction_of_kind(kind) != kNoTransfer) {
    nfe_note_gap(NFE_GAP_UNJUDGED);
  }
  return error;
}

static acl_error copy_2d(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                         size_t width, size_t height, int kind) {
  CALL_NEXT(copy_2d, aclrtMemcpy2d, (dst, dst_pitch, src, src_pitch, width, height, kind));
  return counted(error, kind, (uint64_t)width * height);
}

static acl_error copy_2d_async(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                               size_t width, size_t height, int kind, acl_stream stream) {
  CALL_NEXT(copy_2d_async, aclrtMemcpy2dAsync,
            (dst, dst_pitch, src, src_pitch, width, height, kind, stream));
  return counted(error, kind, (uint64_t)width * height);
}

struct batch {
  size_t count;
  const size_t* sizes;
  const struct batch_attribute* attributes;
  const size_t* first_items;  // an attribute holds from its first item to the next one's
  size_t attribute_count;
  const size_t* failed_item;  // may be null
};

// Every item is one copy.
static acl_error batch_counted(acl_error error, const struct batch* batch) {
  if (error != kSuccess) {
    // What fails at one of its items may have copied those before it.
    const size_t* const failed = batch->failed_item;
    if (failed != NULL && *failed != 0 && *failed < batch->count) nfe_note_gap(NFE_GAP_UNJUDGED);
    return error;
  }
  uint64_t bytes[2] = {0, 0};
  uint64_t transfers[2] = {0, 0};
  size_t attribute = 0;
  for (size_t item = 0; item < batch->count; ++item) {
    while (attribute + 1 < batch->attribute_count && batch->first_items[attribute + 1] <= item) {
      ++attribute;
    }
    int direction = kUnjudged;
    if (attribute < batch->attribute_count) {
      const struct batch_attribute* const places = &batch->attributes[attribute];
      direction = direction_between(places->src.type, places->dst.type);
    }
    if (direction >= 0) {
      bytes[direction] += batch->sizes[item];
      ++transfers[direction];
    } else if (direction == kUnjudged) {
      nfe_note_gap(NFE_GAP_UNJUDGED);
    }
  }
  for (int direction = 0; direction < 2; ++direction) {
    if (transfers[direction] != 0) nfe_count(direction, bytes[direction], transfers[direction]);
  }
  return error;
}

static acl_error copy_batch(void** dsts, size_t* rooms, void** srcs, size_t* sizes, size_t count,
                            struct batch_attribute* attributes, size_t* first_items,
                            size_t attribute_count, size_t* failed_item) {
  CALL_NEXT(copy_batch, aclrtMemcpyBatch,
            (dsts, rooms, srcs, sizes, count, attributes, first_items, attribute_count,
             failed_item));
  const struct batch batch = {count, sizes, attributes, first_items, attribute_count, failed_item};
  return batch_counted(error, &batch);
}

static acl_error copy_batch_async(void** dsts, size_t* rooms, void** srcs, size_t* sizes,
                                  size_t count, struct batch_attribute* attributes,
                                  size_t* first_items, size_t attribute_count, size_t* failed_item,
                                  acl_stream stream) {
  CALL_NEXT(copy_batch_async, aclrtMemcpyBatchAsync,
            (dsts, rooms, srcs, sizes, count, attributes, first_items, attribute_count, failed_item,
             stream));
  const struct batch batch = {count, sizes, attributes, first_items, attribute_count, failed_item};
  return batch_counted(error, &batch);
}

// Aliases, so that this library knows its own functions even where another one's come first.
#define DEFINE(name, self) \
  NFE_EXPORT extern __typeof__(self) name __attribute__((alias(#self)));
#define OWN(X)                                         \
  X(aclrtMemcpy, copy)                                 \
  X(aclrtMemcpyAsync, copy_async)                      \
  X(aclrtMemcpyAsyncWithCondition, copy_conditionally) \
  X(aclrtMemcpyAsyncWithOffset, copy_at_offset)        \
  X(aclrtMemcpyAsyncWithDesc, copy_described)          \
  X(aclrtMemcpy2d, copy_2d)                            \
  X(aclrtMemcpy2dAsync, copy_2d_async)                 \
  X(aclrtMemcpyBatch, copy_batch)                      \
  X(aclrtMemcpyBatchAsync, copy_batch_async)
OWN(DEFINE)

void* nfe_own_definition(enum nfe_form form) {
#define ADDRESS(name, self) [NFE_FORM_##name] = (void*)self,
  static void* const own[NFE_FORM_COUNT] = {OWN(ADDRESS)};
  return own[form];
}
