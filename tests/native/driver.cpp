// Drives the torch-free half of the hook. Each command makes a page in DIR, counts in it and prints
// the paths of the pages, one per line; the tests read them with the Python reader.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "clock.h"
#include "counters.h"
#include "error.h"
#include "layout_json.h"
#include "op_table.h"
#include "page_writer.h"
#include "policy.h"
#include "process_identity.h"

namespace {

using namespace nfe;

using Arguments = std::vector<std::string>;

std::uint64_t number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

// Operators are told apart by address, as PyTorch's are.
const std::string& op_name(std::uint64_t index) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (int each = 0; each < 600; ++each) made.push_back("test::op" + std::to_string(each));
    return made;
  }();
  return names[index];
}

OpRecord& record_of(const std::string& name, const std::string& overload = "") {
  OpTable& table = OpTable::instance();
  OpRecord* record = table.find(&name, name, overload);
  if (record == nullptr) {
    record = table.add(&name, name, overload, [](OpRecord& made) { made.has_cpu_kernel = true; });
  }
  return *record;
}

void count(const std::string& name, std::uint32_t npu, const EventCost& cost) {
  PageWriter& writer = PageWriter::instance();
  Page* page = writer.page();
  if (page == nullptr) return;
  count_event(*OpTable::instance().slot_for(page, writer.generation(), record_of(name),
                                            Kind::kDispatcher, npu),
              cost);
}

void open_page(const std::string& folder, std::uint64_t max_ops = 256) {
  PageConfig config;
  config.directory = folder;
  config.max_ops = max_ops;
  config.hook_version = "test";
  PageWriter::instance().open(config);
}

void print_path() {
  std::printf("%s\n", PageWriter::instance().path().c_str());
  std::fflush(stdout);
}

// DIR THREADS EVENTS OPS: each thread counts EVENTS events of OPS ops in turn, of 10 bytes to the
// host, 1 back and 20,000 ns.
void threads(const Arguments& arguments) {
  open_page(arguments[0]);
  PageWriter::instance().begin_armed_span();
  const std::uint64_t events = number(arguments[2]);
  const std::uint64_t ops = number(arguments[3]);
  std::vector<std::thread> running;
  for (std::uint64_t thread = 0; thread < number(arguments[1]); ++thread) {
    running.emplace_back([=] {
      const EventCost cost{{10, 1}, 20'000};
      for (std::uint64_t event = 0; event < events; ++event) {
        count(op_name(event % ops), static_cast<std::uint32_t>(thread % 2), cost);
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  print_path();
}

// DIR: the policy changes while threads count and ask it.
void churn(const Arguments& arguments) {
  open_page(arguments[0]);
  std::atomic<bool> stop{false};
  std::vector<std::thread> running;
  for (int thread = 0; thread < 3; ++thread) {
    running.emplace_back([&] {
      for (int event = 0; !stop && event < 20'000; ++event) {
        const std::string& name = op_name(static_cast<std::uint64_t>(event % 40));
        if (!Policy::instance().refuses(record_of(name))) count(name, 0, {{1, 1}, 1});
      }
    });
  }
  for (int round = 0; round < 200; ++round) {
    Policy::instance().set(round % 2 == 0 ? Mode::kStrict : Mode::kWarn, {{"test::op1*", true}});
    PageWriter::instance().set_mode(Mode::kStrict, ModeSource::kApi);
    PageWriter::instance().end_armed_span();
    PageWriter::instance().begin_armed_span();
  }
  stop = true;
  for (std::thread& thread : running) thread.join();
  print_path();
}

// DIR: the parent counts 3, its forked child 5 from two threads, a second child nothing.
void fork_children(const Arguments& arguments) {
  open_page(arguments[0]);
  PageWriter::instance().begin_armed_span();
  for (int event = 0; event < 3; ++event) count(op_name(0), 0, {{8, 8}, 1});
  print_path();
  if (const pid_t child = fork(); child == 0) {
    std::thread other([] {
      for (int event = 0; event < 4; ++event) count(op_name(0), 1, {{8, 8}, 1});
    });
    count(op_name(1), 0, {{8, 8}, 1});
    other.join();
    print_path();
    _exit(0);
  } else {
    waitpid(child, nullptr, 0);
  }
  if (const pid_t child = fork(); child == 0) {
    print_path();
    _exit(0);
  } else {
    waitpid(child, nullptr, 0);
  }
}

// DIR MAX_OPS OPS: one event of each of OPS ops, then one more of each.
void overflow(const Arguments& arguments) {
  open_page(arguments[0], number(arguments[1]));
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t op = 0; op < number(arguments[2]); ++op) count(op_name(op), 0, {{1, 1}, 1});
  }
  print_path();
}

// DIR: one op on every device there can be, so that general slots run out; then a second op.
void many_devices(const Arguments& arguments) {
  open_page(arguments[0]);
  for (std::uint64_t op = 0; op < 8; ++op) {
    for (std::uint32_t npu = 0; npu < kMaxNpus; ++npu) count(op_name(op), npu, {{1, 1}, 1});
  }
  print_path();
}

// DIR: two names that are equal in their first 300 characters.
void long_names(const Arguments& arguments) {
  open_page(arguments[0]);
  static const std::string first = std::string(300, 'x') + "::one";
  static const std::string second = std::string(300, 'x') + "::two";
  count(first, 0, {{1, 1}, 1});
  count(second, 0, {{1, 1}, 1});
  count(second, 0, {{1, 1}, 1});
  print_path();
}

// DIR: the address of an operator is used again for another one, as after a library is unloaded.
void reused_address(const Arguments& arguments) {
  open_page(arguments[0]);
  static std::string place = "test::before";
  count(place, 0, {{1, 1}, 1});
  place = "test::after";
  count(place, 0, {{1, 1}, 1});
  count(place, 0, {{1, 1}, 1});
  print_path();
}

// DIR DURATION...: one event of each duration, in nanoseconds.
void durations(const Arguments& arguments) {
  open_page(arguments[0]);
  for (std::size_t each = 1; each < arguments.size(); ++each) {
    count(op_name(0), 0, {{0, 0}, number(arguments[each])});
  }
  print_path();
}

// DIR: counts, opens and closes its own page, prints the path, waits for a line, is killed.
void killed(const Arguments& arguments) {
  open_page(arguments[0]);
  PageWriter::instance().begin_armed_span();
  for (int event = 0; event < 7; ++event) count(op_name(0), 0, {{8, 8}, 1});
  close(open(PageWriter::instance().path().c_str(), O_RDONLY));
  print_path();
  if (std::getchar() == EOF) return;
  std::raise(SIGKILL);
}

// DIR: blocked, errors and a mode.
void refused(const Arguments& arguments) {
  open_page(arguments[0]);
  Policy::instance().set(Mode::kStrict, {{"test::op1", true}, {"test::op2*", true},
                                         {"test::op22", false}});
  PageWriter::instance().set_mode(Mode::kStrict, ModeSource::kMode);
  for (const std::uint64_t op : {0, 1, 2, 22, 23}) {
    Slot& slot = *OpTable::instance().slot_for(PageWriter::instance().page(),
                                               PageWriter::instance().generation(),
                                               record_of(op_name(op)), Kind::kDispatcher, 3);
    Policy::instance().refuses(record_of(op_name(op))) ? count_blocked(slot) : count_error(slot);
  }
  print_path();
}

// DIR: prints the bits of the device nodes davinciN in DIR.
void davinci(const Arguments& arguments) {
  for (const std::uint64_t word : davinci_devices(arguments[0].c_str())) {
    std::printf("%llu\n", static_cast<unsigned long long>(word));
  }
}

void layout(const Arguments&) { std::printf("%s\n", layout_json().c_str()); }

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(const Arguments&)> commands = {
      {"threads", threads},       {"churn", churn},           {"fork", fork_children},
      {"overflow", overflow},     {"devices", many_devices},  {"long-names", long_names},
      {"reused", reused_address}, {"durations", durations},   {"killed", killed},
      {"refused", refused},       {"davinci", davinci},       {"layout", layout},
  };
  const auto command = commands.find(argc > 1 ? argv[1] : "");
  if (command == commands.end()) return 2;
  try {
    command->second(Arguments(argv + 2, argv + argc));
  } catch (const nfe::Error& error) {
    std::fprintf(stderr, "%s: %s: %s\n", error.reason().c_str(), error.what(),
                 error.next_step().c_str());
    return 1;
  }
  return 0;
}
