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

// Path of this process's page; empty when there is none. Returns the bytes it needs.
std::size_t nfe_page_path(char* path, std::size_t path_bytes) noexcept;
}

#pragma GCC visibility pop
