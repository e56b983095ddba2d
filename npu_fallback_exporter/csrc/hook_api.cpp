#include "hook_api.h"

#include <torch/version.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "call_site.h"
#include "copy_context.h"
#include "dispatcher_hook.h"
#include "error.h"
#include "first_sight.h"
#include "forbid_scope.h"
#include "layout_json.h"
#include "notes.h"
#include "page_writer.h"
#include "policy.h"
#include "tracker.h"

namespace {

std::size_t copy_out(const std::string& text, char* to, std::size_t bytes) {
  if (bytes != 0) {
    const std::size_t copied = std::min(text.size(), bytes - 1);
    std::memcpy(to, text.data(), copied);
    to[copied] = '\0';
  }
  return text.size() + 1;
}

// Runs `work` and turns what it throws into the error text.
template <typename Work>
int guarded(char* error, std::size_t error_bytes, Work work) noexcept {
  try {
    work();
    return 0;
  } catch (const nfe::Error& failure) {
    copy_out(failure.reason() + "\n" + failure.what() + "\n" + failure.next_step(), error,
             error_bytes);
  } catch (const std::exception& failure) {
    copy_out(std::string("other\n") + failure.what() + "\nreport it with this line", error,
             error_bytes);
  } catch (...) {
    copy_out("other\nunknown exception\nreport it with this line", error, error_bytes);
  }
  return -1;
}

std::string text(const char* value) { return value == nullptr ? std::string() : value; }

nfe::PageConfig page_config(const nfe_config& config) {
  nfe::PageConfig page;
  page.directory = text(config.directory);
  page.directory_is_default = config.directory_is_default != 0;
  page.group = config.group;
  page.max_ops = config.max_ops;
  page.track = static_cast<nfe::Track>(config.track);
  page.boundary = nfe::Boundary::kNone;
  page.visible_devices_set = config.visible_devices != nullptr;
  page.visible_devices = text(config.visible_devices);
  page.torch_version = TORCH_VERSION;
  page.torch_npu_version = text(config.torch_npu_version);
  page.cann_version = text(config.cann_version);
  page.hook_version = text(config.hook_version);
  return page;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end != 0) lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<nfe::Policy::Rule> parse_rules(const std::string& text) {
  std::vector<nfe::Policy::Rule> rules;
  for (const std::string& line : lines_of(text)) {
    if (line.size() > 1) rules.push_back({line.substr(1), line.front() == '+'});
  }
  return rules;
}

// At exit the armed span ends; the page stays, and its lock goes with the process.
__attribute__((destructor)) void end_armed_span() { nfe::PageWriter::instance().end_armed_span(); }

}  // namespace

const char* nfe_torch_version() noexcept { return TORCH_VERSION; }

const char* nfe_layout_json() noexcept {
  try {
    return nfe::layout_json().c_str();
  } catch (...) {
    return "";
  }
}

int nfe_has_fallback() noexcept { return nfe::DispatcherHook::has_fallback() ? 1 : 0; }

int nfe_arm(const nfe_config* config, char* error, std::size_t error_bytes) noexcept {
  return guarded(error, error_bytes, [&] {
    if (nfe::DispatcherHook::armed()) return;
    if (!nfe::DispatcherHook::has_fallback()) {
      throw nfe::Error("no_fallback", "no CPU fallback is registered for the NPU",
                       "import torch_npu before arming");
    }
    nfe::DispatcherHook::set_vendor_refuses(config->vendor_refuses != 0);
    nfe::PageWriter& writer = nfe::PageWriter::instance();
    writer.open(page_config(*config));
    nfe::DispatcherHook::arm();
    if (static_cast<nfe::Track>(config->track) == nfe::Track::kAll) {
      nfe::set_listed_operators(config->explicit_kernels);
      nfe::DispatcherHook::set_tracked(true);
      nfe::Tracker::arm();
    }
    writer.begin_armed_span();
  });
}

void nfe_disarm() noexcept {
  nfe::DispatcherHook::set_tracked(false);
  nfe::Tracker::disarm();
  nfe::DispatcherHook::disarm();
  nfe::PageWriter::instance().end_armed_span();
}

int nfe_armed() noexcept { return nfe::DispatcherHook::armed() ? 1 : 0; }

int nfe_set_policy(std::uint32_t mode, std::uint32_t source, const char* rules, char* error,
                   std::size_t error_bytes) noexcept {
  return guarded(error, error_bytes, [&] {
    nfe::Policy::instance().set(static_cast<nfe::Mode>(mode), parse_rules(text(rules)));
    nfe::PageWriter::instance().set_mode(static_cast<nfe::Mode>(mode),
                                         static_cast<nfe::ModeSource>(source));
  });
}

int nfe_forbid_enter(const char* allowed, char* error, std::size_t error_bytes) noexcept {
  return guarded(error, error_bytes, [&] { nfe::ForbidScope::enter(lines_of(text(allowed))); });
}

int nfe_forbid_leave() noexcept { return nfe::ForbidScope::leave() ? 0 : -1; }

void nfe_set_call_sites(std::int32_t record, nfe_sight_callback callback) noexcept {
  nfe::FirstSight::record_call_sites(record != 0);
  nfe::CallSites::instance().set_callback(callback);
}

void nfe_look_again() noexcept { nfe::FirstSight::look_again(); }

int nfe_append_note(std::uint32_t generation, std::uint32_t type, std::uint32_t op_row,
                    std::uint64_t unix_ns, std::int32_t is_first, const char* text) noexcept {
  nfe::PageWriter& writer = nfe::PageWriter::instance();
  nfe::Page* const page = writer.page();
  if (page == nullptr || writer.generation() != generation) return -1;
  const bool done = nfe::append_note(
      *page, static_cast<nfe::NoteType>(type), static_cast<std::uint16_t>(op_row), unix_ns, text,
      is_first != 0 ? 0 : nfe::kNoteReserve);
  return done ? 0 : -1;
}

std::size_t nfe_page_path(char* path, std::size_t path_bytes) noexcept {
  try {
    return copy_out(nfe::PageWriter::instance().path(), path, path_bytes);
  } catch (...) {
    return copy_out({}, path, path_bytes);
  }
}
