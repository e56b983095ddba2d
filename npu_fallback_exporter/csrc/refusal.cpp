#include "refusal.h"

#include <c10/util/Exception.h>

#include <string>

#include "counters.h"
#include "page_writer.h"
#include "policy.h"

namespace nfe {
namespace {

void count(OpRecord& record, Kind kind, std::uint32_t npu) noexcept {
  PageWriter& writer = PageWriter::instance();
  if (Page* page = writer.page()) {
    count_blocked(*OpTable::instance().slot_for(page, writer.generation(), record, kind, npu));
  }
}

void refuse(OpRecord& record, Kind kind, std::uint32_t npu, const char* reason) {
  if (!Policy::instance().refuses(record)) return;
  count(record, kind, npu);
  const std::string name = record.full_name();
  C10_THROW_ERROR(Error, "npu-fallback-exporter refuses " + name + " on npu:" +
                             std::to_string(npu) + ": it would run on the CPU (kind " + reason +
                             "): use another operator, or allow it with NPU_FALLBACK_ALLOW=" + name +
                             ", or set NPU_FALLBACK_MODE=warn");
}

}  // namespace

void refuse_dispatcher_fallback(OpRecord& record, std::uint32_t npu) {
  refuse(record, Kind::kDispatcher, npu, "dispatcher: no NPU kernel is registered");
}

void refuse_explicit_kernel(OpRecord& record, std::uint32_t npu) {
  refuse(record, Kind::kExplicitKernel, npu,
         "explicit_kernel: its NPU kernel computes on the host here");
}

void count_blocked_explicit_kernel(OpRecord& record, std::uint32_t npu) noexcept {
  count(record, Kind::kExplicitKernel, npu);
}

}  // namespace nfe
