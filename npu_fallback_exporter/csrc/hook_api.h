// The hook's C interface, called from Python through ctypes. Nothing throws across it.
//
// Functions that can fail return 0 on success and otherwise fill `error`: reason, what and next
// step, separated by newlines, cut to its size.
#pragma once

#include <cstddef>
#include <cstdint>

// The rest of the library is compiled with hidden visibility.
#pragma GCC visibility push(default)

extern "C" {

struct nfe_config {
  const char* directory;
  std::int32_t directory_is_default;
  std::int64_t group;  // -1: none
  std::uint64_t max_ops;
  const char* visible_devices;  // null: ASCEND_RT_VISIBLE_DEVICES is not set
  const char* torch_npu_version;
  const char* cann_version;
  const char* hook_version;
  std::int32_t vendor_refuses;   // torch_npu's own switch is in force
  std::int32_t track;            // Track of page_layout.h
  const char* explicit_kernels;  // full names, one per line: the product's table
};

// One look at an event, for Python to find out where the operator was called from.
struct nfe_sight {
  const char* op;             // full overload name
  const char* arguments;      // JSON (argument_text.h); empty: none recorded
  std::uint64_t thread;       // of the operator, as pthread_self() and threading.get_ident() tell it
  std::uint64_t unix_ns;
  std::uint32_t generation;   // of the page
  std::uint32_t op_row;       // in that page
  std::int32_t is_first;      // the first event of the op in this process
  std::uint32_t site_bytes;   // of `site`
  char* site;                 // filled in: the innermost user frame, terminated
  const std::int32_t* caller_waits;  // 0: too late, the thread has run on
};
// Returns 1 for a call site that is new, 0 for one that is known, -1 when it cannot be told.
typedef std::int32_t (*nfe_sight_callback)(const struct nfe_sight*);

// Version of PyTorch that this binary was compiled for.
const char* nfe_torch_version(void) noexcept;
// layout_json.h
const char* nfe_layout_json(void) noexcept;

// True when a backend fallback for the NPU is registered, so that there is something to arm.
int nfe_has_fallback(void) noexcept;

// Makes the page and arms. Idempotent: armed already, it changes nothing.
int nfe_arm(const nfe_config* config, char* error, std::size_t error_bytes) noexcept;
void nfe_disarm(void) noexcept;
int nfe_armed(void) noexcept;

// `mode` and `source` as in page_layout.h; `rules`: one per line, "+" (allow) or "-" (block), then
// a glob. Later lines win.
int nfe_set_policy(std::uint32_t mode, std::uint32_t source, const char* rules, char* error,
                   std::size_t error_bytes) noexcept;

// Begins and ends a block in this thread in which nothing falls back but what `allowed` (one glob
// per line) names. nfe_forbid_leave returns -1 when this thread is in no block.
int nfe_forbid_enter(const char* allowed, char* error, std::size_t error_bytes) noexcept;
int nfe_forbid_leave(void) noexcept;

// Whom to ask where an operator was called from (call_site.h); null: nobody. With `record` 0
// neither call sites nor arguments are recorded.
void nfe_set_call_sites(std::int32_t record, nfe_sight_callback callback) noexcept;

// Looks at the next events of every operator as at its first ones (first_sight.h).
void nfe_look_again(void) noexcept;

// Appends a note of page_layout.h to the page of `generation`; `is_first` as in nfe_sight. Returns 0,
// or -1 when it finds no room or the page is another one now.
int nfe_append_note(std::uint32_t generation, std::uint32_t type, std::uint32_t op_row,
                    std::uint64_t unix_ns, std::int32_t is_first, const char* text) noexcept;

// Path of this process's page; empty when there is none. Returns the bytes it needs.
std::size_t nfe_page_path(char* path, std::size_t path_bytes) noexcept;
}

#pragma GCC visibility pop
