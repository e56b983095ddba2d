#include "refusal.h"

#include <c10/util/Exception.h>

#include "counters.h"
#include "page_writer.h"

namespace nfe {
namespace {

// What to do, by who refuses. The first that holds is the one to change first.
std::string how_to_allow(const std::string& op) {
  switch (Policy::instance().refusal(op)) {
    case Policy::Refusal::kMode:
      return "use another operator, or allow it with NPU_FALLBACK_ALLOW=" + op +
             " or set_op_policy(\"" + op + "\", \"allow\"), or set NPU_FALLBACK_MODE=warn";
    case Policy::Refusal::kRule:
      return "use another operator, or allow it again with set_op_policy(\"" + op +
             "\", \"allow\")";
    case Policy::Refusal::kNone:
      break;
  }
  return "use another operator, or allow it in this block with forbid_fallback(allow=[\"" + op +
         "\"])";
}

}  // namespace

bool is_refused(const std::string& op) {
  if (Policy::instance().refusal(op) != Policy::Refusal::kNone) return true;
  return ForbidScope::any() && ForbidScope::refuses(op);
}

void refuse(const std::string& op, Kind kind, std::uint32_t npu, const std::string& reason) {
  const char* const kind_name = kind == Kind::kDispatcher ? "dispatcher" : "explicit_kernel";
  C10_THROW_ERROR(Error, "npu-fallback-exporter refuses " + op + " on npu:" + std::to_string(npu) +
                             ": it would run on the CPU (kind " + kind_name + ": " + reason +
                             "): " + how_to_allow(op));
}

void count_refusal(OpRecord& record, Kind kind, std::uint32_t npu) noexcept {
  PageWriter& writer = PageWriter::instance();
  if (Page* page = writer.page()) {
    count_blocked(*OpTable::instance().slot_for(page, writer.generation(), record, kind, npu));
  }
}

}  // namespace nfe
