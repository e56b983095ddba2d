// Drives the page writer through what can happen to a page while its process lives. Each command
// makes a page in DIR and prints the paths of the pages, one per line.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "counters.h"
#include "error.h"
#include "notes.h"
#include "op_table.h"
#include "page_writer.h"

namespace {

using namespace nfe;

using Arguments = std::vector<std::string>;

std::uint64_t number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

// One event of "test::opN" of 10 bytes to the host, 1 back and 20,000 ns.
void count(std::uint64_t op, std::uint32_t npu = 0) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (int each = 0; each < 256; ++each) made.push_back("test::op" + std::to_string(each));
    return made;
  }();
  PageWriter& writer = PageWriter::instance();
  OpTable& table = OpTable::instance();
  Page* page = writer.page();
  if (page == nullptr) return;
  const std::string& name = names[op];
  OpRecord* record = table.find(&name, name, "");
  if (record == nullptr) record = table.add(&name, name, "", [](OpRecord&) {});
  const EventCost cost{{10, 1}, 20'000};
  count_event(*table.slot_for(page, writer.generation(), *record, Kind::kDispatcher, npu), cost);
}

void open_page(const std::string& folder, std::int64_t group = -1, bool is_default = false) {
  PageConfig config;
  config.directory = folder;
  config.directory_is_default = is_default;
  config.group = group;
  config.hook_version = "test";
  PageWriter::instance().open(config);
  PageWriter::instance().begin_armed_span();
}

void print_path() {
  std::printf("%s\n", PageWriter::instance().path().c_str());
  std::fflush(stdout);
}

void wait_for_a_line() {
  for (int character = 0; character != '\n' && character != EOF;) character = std::getchar();
}

void count_in_threads(int threads, int events) {
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; ++thread) {
    running.emplace_back([=] {
      for (int event = 0; event < events; ++event) count(static_cast<std::uint64_t>(event % 40));
    });
  }
  for (std::thread& thread : running) thread.join();
}

// DIR: counts 3, waits for a line while somebody does something to the page or its folder, counts
// from four threads and over new ops; then a forked child counts 5.
void disturbed(const Arguments& arguments) {
  open_page(arguments[0]);
  for (int event = 0; event < 3; ++event) count(0);
  print_path();
  wait_for_a_line();
  count_in_threads(4, 2000);
  append_note(*PageWriter::instance().page(), NoteType::kCallSite, 1, 0, "{}", 0);
  PageWriter::instance().set_mode(Mode::kStrict, ModeSource::kApi);
  PageWriter::instance().end_armed_span();
  PageWriter::instance().begin_armed_span();
  if (const pid_t child = fork(); child == 0) {
    for (int event = 0; event < 5; ++event) count(1);
    print_path();
    _exit(0);
  } else {
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("child %d\n", status);
  }
  std::printf("alive\n");
}

std::atomic<int> handled{0};

// DIR: somebody else's handler for SIGBUS is there first; then it is sent the signal.
void foreign_handler(const Arguments& arguments) {
  std::signal(SIGBUS, [](int) { ++handled; });
  open_page(arguments[0]);
  print_path();
  std::raise(SIGBUS);
  std::printf("%d\n", handled.load());
}

// DIR: another file, mapped by the program itself, is cut.
void foreign_fault(const Arguments& arguments) {
  open_page(arguments[0]);
  print_path();
  PageConfig other;
  other.directory = arguments[0];
  const PageFile file = create_page_file(other);
  if (truncate(file.path.c_str(), 0) == 0) file.page->header.op_rows.store(1);
}

// DIR: counts 3, opens and closes its own page, and ends while a forked child lives on, which has
// let go of the page; the child counts nothing and ends at the end of its input.
void outlived(const Arguments& arguments) {
  open_page(arguments[0]);
  for (int event = 0; event < 3; ++event) count(0);
  close(open(PageWriter::instance().path().c_str(), O_RDONLY));
  if (fork() == 0) {
    wait_for_a_line();
    _exit(0);
  }
  print_path();
}

// DIR GROUP: the default folder, shared with a group.
void shared(const Arguments& arguments) {
  open_page(arguments[0], std::strtoll(arguments[1].c_str(), nullptr, 10), true);
  print_path();
}

// DIR EVENTS OPS NPU: a short-lived worker.
void worker(const Arguments& arguments) {
  open_page(arguments[0]);
  for (std::uint64_t event = 0; event < number(arguments[1]); ++event) {
    count(event % number(arguments[2]), static_cast<std::uint32_t>(number(arguments[3])));
  }
  print_path();
}

// DIR THREADS: counts from many threads until the end of its input.
void endless(const Arguments& arguments) {
  open_page(arguments[0]);
  print_path();
  std::atomic<bool> stop{false};
  std::vector<std::thread> running;
  for (std::uint64_t thread = 0; thread < number(arguments[1]); ++thread) {
    running.emplace_back([&] {
      while (!stop) count(0);
    });
  }
  wait_for_a_line();
  stop = true;
  for (std::thread& thread : running) thread.join();
}

// DIR FILE PAUSE_US: counts until it is killed; after each event its number is written to FILE.
void acknowledging(const Arguments& arguments) {
  open_page(arguments[0]);
  const int file = open(arguments[1].c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const auto pause = static_cast<useconds_t>(number(arguments[2]));
  for (std::uint64_t events = 1;; ++events) {
    count(events % 8, static_cast<std::uint32_t>(events % 2));
    if (pwrite(file, &events, sizeof events, 0) != sizeof events) std::abort();
    usleep(pause);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(const Arguments&)> commands = {
      {"disturbed", disturbed}, {"foreign-handler", foreign_handler},
      {"foreign-fault", foreign_fault}, {"outlived", outlived},
      {"shared", shared},       {"worker", worker},
      {"endless", endless},     {"acknowledging", acknowledging},
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
