// Drives the torch-free half of first sights: asking for call sites, notes, summaries, blocks.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "call_site.h"
#include "counters.h"
#include "forbid_scope.h"
#include "notes.h"
#include "op_table.h"
#include "page_writer.h"
#include "summary.h"

namespace {

using namespace nfe;

using Arguments = std::vector<std::string>;

std::uint64_t number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

Page& open_page(const std::string& folder) {
  PageConfig config;
  config.directory = folder;
  PageWriter::instance().open(config);
  return *PageWriter::instance().page();
}

Slot& slot_of(Page& page, const std::string& name) {
  OpTable& table = OpTable::instance();
  OpRecord* record = table.find(&name, name, "");
  if (record == nullptr) record = table.add(&name, name, "", [](OpRecord&) {});
  return *table.slot_for(&page, PageWriter::instance().generation(), *record, Kind::kDispatcher, 0);
}

const char* word(CallSites::Answer answer) {
  switch (answer) {
    case CallSites::Answer::kNone: return "none";
    case CallSites::Answer::kKnown: return "known";
    case CallSites::Answer::kNew: return "new";
    case CallSites::Answer::kTooLate: return "too late";
  }
  return "?";
}

void ask_and_print() {
  std::string site;
  const auto answer = CallSites::instance().ask({}, "test::op", "{}", site);
  std::printf("%s [%s]\n", word(answer), site.c_str());
}

std::int32_t answer_from_another_thread(const nfe_sight* sight) {
  const bool other = sight->thread != static_cast<std::uint64_t>(pthread_self());
  std::snprintf(sight->site, sight->site_bytes, "%s, %s thread, %s", sight->op,
                other ? "another" : "the same", *sight->caller_waits ? "waits" : "gone");
  return 1;
}

// An answer, none while an answer is given, and none when nobody answers any more.
void answers(const Arguments&) {
  CallSites::patience = std::chrono::seconds(60);  // the machine may be busy
  ask_and_print();
  CallSites::instance().set_callback(&answer_from_another_thread);
  ask_and_print();
  CallSites::instance().set_callback([](const nfe_sight*) -> std::int32_t {
    ask_and_print();
    return 0;
  });
  ask_and_print();
  CallSites::instance().set_callback(nullptr);
  ask_and_print();
}

std::promise<void> released;
std::promise<std::int32_t> caller_waited;

// The holder of what the answering thread needs does not let go until the caller has run on.
void late(const Arguments&) {
  CallSites::instance().set_callback([](const nfe_sight* sight) -> std::int32_t {
    released.get_future().wait();
    caller_waited.set_value(__atomic_load_n(sight->caller_waits, __ATOMIC_ACQUIRE));
    return 1;
  });
  ask_and_print();
  released.set_value();
  std::printf("caller waits: %d\n", caller_waited.get_future().get());
  CallSites::instance().set_callback(nullptr);
}

// THREADS ROUNDS: many threads ask while the callback comes and goes.
void crowd(const Arguments& arguments) {
  std::vector<std::thread> running;
  for (std::uint64_t thread = 0; thread < number(arguments[0]); ++thread) {
    running.emplace_back([&] {
      for (std::uint64_t round = 0; round < number(arguments[1]); ++round) {
        std::string site;
        CallSites::instance().ask({}, "test::op", "{}", site);
      }
    });
  }
  for (std::uint64_t round = 0; round < number(arguments[1]); ++round) {
    CallSites::instance().set_callback(round % 2 == 0 ? &answer_from_another_thread : nullptr);
  }
  for (std::thread& thread : running) thread.join();
  CallSites::instance().set_callback(nullptr);
  std::printf("ended\n");
}

// DIR THREADS NOTES BYTES KEEP_FREE: each thread appends NOTES call sites whose stack is empty and
// whose text has BYTES bytes.
void notes(const Arguments& arguments) {
  Page& page = open_page(arguments[0]);
  static const std::string op = "test::op";
  slot_of(page, op);
  std::string text = "{\"stack\":[],\"site\":null";
  text += ",\"fill\":\"" + std::string(number(arguments[3]) - text.size() - 11, 'x') + "\"}";
  std::vector<std::thread> running;
  for (std::uint64_t thread = 0; thread < number(arguments[1]); ++thread) {
    running.emplace_back([&, thread] {
      for (std::uint64_t note = 0; note < number(arguments[2]); ++note) {
        append_note(page, NoteType::kCallSite, 1, thread * 1'000'000 + note, text,
                    number(arguments[4]));
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  std::printf("%s\n", PageWriter::instance().path().c_str());
}

// DIR EVENTS...: EVENTS events each, 61 seconds apart; prints the lines.
void summary(const Arguments& arguments) {
  Page& page = open_page(arguments[0]);
  static const std::string often = "test::often";
  static const std::string seldom = "test::seldom";
  std::uint64_t now = 1'000'000'000'000;
  for (std::size_t each = 1; each < arguments.size(); ++each) {
    for (std::uint64_t event = 0; event < number(arguments[each]); ++event) {
      count_event(slot_of(page, event % 4 == 0 ? seldom : often), {});
      now += 1000;
      const auto line = Summary::at_event(page, now);
      if (line.has_value()) std::printf("%s\n", line->c_str());
    }
    now += 61'000'000'000;
  }
}

// OP ALLOWED... with "-" between blocks, outermost first.
void blocks(const Arguments& arguments) {
  std::vector<std::string> allowed;
  int open = 0;
  for (std::size_t each = 1; each <= arguments.size(); ++each) {
    if (each == arguments.size() || arguments[each] == "-") {
      ForbidScope::enter(std::move(allowed));
      allowed = {};
      ++open;
    } else {
      allowed.push_back(arguments[each]);
    }
  }
  bool elsewhere = false;
  std::thread([&] { elsewhere = ForbidScope::any(); }).join();
  std::printf("%s\n", ForbidScope::refuses(arguments[0]) ? "refused" : "allowed");
  while (open-- > 0) ForbidScope::leave();
  std::printf("%s %s\n", elsewhere || ForbidScope::any() ? "open" : "closed",
              ForbidScope::leave() ? "left" : "none left");
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(const Arguments&)> commands = {
      {"answers", answers}, {"late", late},       {"crowd", crowd},
      {"notes", notes},     {"summary", summary}, {"blocks", blocks},
  };
  const auto command = commands.find(argc > 1 ? argv[1] : "");
  if (command == commands.end()) return 2;
  command->second(Arguments(argv + 2, argv + argc));
  return 0;
}
