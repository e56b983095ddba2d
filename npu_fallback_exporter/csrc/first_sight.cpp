#include "first_sight.h"

#include <atomic>
#include <cstdio>
#include <exception>
#include <string>

#include "call_site.h"
#include "clock.h"
#include "notes.h"
#include "policy.h"

namespace nfe {
namespace {

std::atomic<bool> records_call_sites{true};

// OpRecord::looks: generation (32 bits), done (1), sites (15), looks (16).
std::uint32_t looks_of(std::uint64_t word) { return static_cast<std::uint32_t>(word & 0xFFFF); }
std::uint32_t sites_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 16 & 0x7FFF);
}

}  // namespace

void FirstSight::record_call_sites(bool record) noexcept {
  records_call_sites.store(record, std::memory_order_relaxed);
}

void FirstSight::look_again() noexcept {
  OpTable::instance().for_each([](OpRecord& record) {
    const std::uint64_t word = record.looks.load(std::memory_order_relaxed);
    if (word != 0) record.looks.store((word >> 32 << 32) | 1, std::memory_order_relaxed);
  });
}

// Adds to the numbers of this generation, and returns what was there before through is_first_.
void FirstSight::count_sites(std::uint32_t looks, std::uint32_t sites) noexcept {
  const std::uint32_t max_looks = records_call_sites.load(std::memory_order_relaxed) ? kMaxLooks : 1;
  std::uint64_t present = record_->looks.load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    const std::uint64_t of_now = present >> 32 == generation_ ? present : 0;
    is_first_ = of_now == 0;
    const std::uint32_t all_looks = looks_of(of_now) + looks;
    const std::uint32_t all_sites = sites_of(of_now) + sites;
    const bool done = all_looks >= max_looks || all_sites >= kMaxSites;
    next = static_cast<std::uint64_t>(generation_) << 32 | (done ? kDone : 0) |
           static_cast<std::uint64_t>(all_sites) << 16 | all_looks;
  } while (!record_->looks.compare_exchange_weak(present, next, std::memory_order_relaxed));
}

void FirstSight::begin(OpRecord& record, Kind kind, std::uint32_t generation,
                       const c10::FunctionSchema& schema, const torch::jit::Stack& stack) noexcept {
  record_ = &record;
  kind_ = kind;
  generation_ = generation;
  if (!records_call_sites.load(std::memory_order_relaxed)) return;
  if (stack.size() < schema.arguments().size()) return;
  try {
    arguments_ = describe_arguments(schema, schema.arguments().size(), stack);
  } catch (const std::exception&) {
    arguments_ = {};  // a tensor that has no sizes, or no memory: told without
  }
}

void FirstSight::tell_looked_at(Slot& slot, std::uint32_t npu, const EventCost& cost,
                                const char* reason) noexcept {
  count_sites(1, 0);
  const bool is_first = is_first_;
  try {
    const std::string op = record_->full_name();
    std::string site;
    if (records_call_sites.load(std::memory_order_relaxed)) {
      nfe_sight sight{};
      sight.generation = generation_;
      sight.op_row = slot.key.load(std::memory_order_relaxed) >> 16 & 0xFFFF;
      sight.is_first = is_first ? 1 : 0;
      sight.unix_ns = unix_ns();
      const auto answer = CallSites::instance().ask(sight, op, arguments_.json, site);
      if (answer == CallSites::Answer::kNew) count_sites(0, 1);
      if (answer == CallSites::Answer::kTooLate) count_sites(kLooksTooLate - 1, 0);
    }
    if (!is_first || Policy::instance().mode() == Mode::kObserve) return;
    std::fprintf(stderr,
                 "npu-fallback-exporter: %s ran on the CPU (kind %s, npu:%u, %llu bytes to the "
                 "host, %llu back, %.3f ms)%s%s%s%s: %s; told once per op\n",
                 op.c_str(), kind_ == Kind::kDispatcher ? "dispatcher" : "explicit_kernel", npu,
                 static_cast<unsigned long long>(cost.bytes[0]),
                 static_cast<unsigned long long>(cost.bytes[1]),
                 static_cast<double>(cost.duration_ns) / 1e6,
                 arguments_.words.empty() ? "" : " of ", arguments_.words.c_str(),
                 site.empty() ? "" : ", called from ", site.c_str(), reason);
  } catch (const std::exception&) {  // out of memory: the event is counted, which matters more
  }
}

}  // namespace nfe
