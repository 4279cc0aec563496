// SPDX-License-Identifier: Apache-2.0
// What is left when `lock` and `create` are stopped in the middle, by Ctrl-C or by SIGKILL. The moment is chosen: a
// line that they are just saying, half of a download, or uv at work.
#include "sealift/bundle/host/interrupt.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <set>
#include <thread>

#include "packager/host/process.hpp"
#include "tests/packager/desk.hpp"
#include "tests/packager/workshop.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::Desk;
using sealift::test::files_of;
using sealift::test::no_python;
using sealift::test::read_file;
using sealift::test::Workshop;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

constexpr int kStopped = 77;

// Does `work` as main would, in a process of its own that `child` names, and returns how that ended.
int in_child(const std::function<void()>& work, std::atomic<pid_t>& child) {
  child = ::fork();
  if (child == 0) {
    bundle::catch_interrupts();
    try {
      work();
    } catch (const bundle::Interrupted&) {
      ::_exit(kStopped);
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

bool ended_by(int status, int signal) {
  return signal == SIGKILL ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                           : WIFEXITED(status) && WEXITSTATUS(status) == kStopped;
}

// A stream that raises a signal while a line with these words is being said.
struct Trap {
  std::string words;
  int signal;

  std::FILE* open() {
    return ::fopencookie(this, "w",
                         {.read = nullptr,
                          .write =
                              [](void* self, const char* text, std::size_t size) {
                                const Trap& trap = *static_cast<Trap*>(self);
                                if (std::string_view(text, size).find(trap.words) != std::string_view::npos)
                                  ::raise(trap.signal);
                                return static_cast<ssize_t>(size);
                              },
                          .seek = nullptr,
                          .close = nullptr});
  }
};

// Beside what the cache keeps there is nothing in it.
void check_no_scratch(const fs::path& cache) {
  static const std::set<std::string> kKept = {"CACHEDIR.TAG", "chunks", "native", "parts", "scratch", "sha256"};
  for (const fs::directory_entry& entry : fs::directory_iterator(cache)) {
    INFO(entry.path().string());
    CHECK(kKept.contains(entry.path().filename().string()));
  }
  CHECK(fs::is_empty(cache / "scratch"));
}

}  // namespace

TEST_CASE("a create that is stopped leaves no bundle, and the next one makes the very bundle that was wanted") {
  for (const int signal : {SIGINT, SIGTERM, SIGKILL})
    // In this order: everything fetched; checked, and nothing written; all of it written, and not yet named.
    for (const char* words : {"fetching 1 files", "native:", "writing demo-1"}) {
      INFO(signal, " at ", std::string(words));
      Workshop workshop;
      Trap trap{words, signal};
      std::atomic<pid_t> child{0};
      CHECK(ended_by(in_child([&] { workshop.pack("out", 0, {}, trap.open()); }, child), signal));
      CHECK_FALSE(fs::exists(workshop.dir / "out/demo-1"));
      if (signal != SIGKILL) {
        CHECK_FALSE(fs::exists(workshop.dir / "out/.demo-1.partial"));
        check_no_scratch(workshop.cache());
      }
      workshop.pack("out");
      CHECK_FALSE(fs::exists(workshop.dir / "out/.demo-1.partial"));
      check_no_scratch(workshop.cache());             // what a kill has left, too
      CHECK(workshop.server.requests().size() == 1);  // the download of the first run
      workshop.pack("undisturbed");
      CHECK(files_of(workshop.dir / "out/demo-1") == files_of(workshop.dir / "undisturbed/demo-1"));
    }
}

TEST_CASE("a download that is stopped half way goes on from there") {
  for (const int signal : {SIGINT, SIGKILL}) {
    INFO(signal);
    Workshop workshop;
    const LockedWheel& wheel = workshop.lock.wheels[0];
    const fs::path part = Cache(workshop.cache()).part(wheel.sha256);
    const std::string bytes =
        test::make_wheel({.files = {{"demo/__init__.py", "ANSWER = 42\n"}, {"demo/libdemo.so", std::string(9000, 'x')}},
                          .entry_points = "[console_scripts]\ndemo = demo:main\n"});
    REQUIRE(bundle::sha256(bundle::as_bytes(bytes)) == wheel.sha256);
    const std::size_t half = bytes.size() / 2;
    std::atomic<pid_t> child{0};
    workshop.server.put("/" + wheel.file_name, {.body = bytes, .cut_after = half, .cuts = 1, .once_cut = [&] {
                                                  std::error_code none;
                                                  while (child == 0 || fs::file_size(part, none) != half)
                                                    std::this_thread::yield();
                                                  ::kill(child, signal);
                                                }});
    CHECK(ended_by(in_child([&] { workshop.pack(); }, child), signal));
    CHECK(fs::file_size(part) == half);
    workshop.pack();
    REQUIRE(workshop.server.requests().size() == 2);
    CHECK(workshop.server.requests()[1].range == "bytes=" + std::to_string(half) + "-");
  }
}

TEST_CASE("a lock that is stopped while uv works ends uv too, and leaves no lock") {
  if (no_python()) return;
  const Desk desk;
  const std::string folder = desk.dir.path().string(), good = read_file(desk.dir / "uv");
  const auto lock = [&] {
    return run_process(
        {SEALIFT_PACK, "lock", folder + "/job.toml", "--uv", folder + "/uv", "--cache", folder + "/cache"});
  };
  const auto written = [&] {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      if (entry.path().string().find("lock") != std::string::npos) return true;
    return false;
  };
  SUBCASE("by Ctrl-C") {
    write_file(desk.dir / "uv",
               "#!/bin/sh\necho $$ > " + folder + "/uv.pid\nkill -INT $PPID\nexec tail -f /dev/null\n");
    const ProcessResult stopped = lock();
    CHECK(stopped.exit_code == 128 + SIGINT);
    CHECK(stopped.err.find("the same command goes on from here") != std::string::npos);
    CHECK(::kill(std::stoi(read_file(desk.dir / "uv.pid")), 0) != 0);
    check_no_scratch(desk.dir / "cache");
  }
  SUBCASE("by SIGKILL") {
    write_file(desk.dir / "uv", "#!/bin/sh\nkill -KILL $PPID\n");
    CHECK(lock().exit_code == 128 + SIGKILL);
  }
  CHECK_FALSE(written());
  write_file(desk.dir / "uv", good);
  CHECK(lock().exit_code == 0);
  CHECK(written());
}

TEST_CASE("a bundle that finds no room is refused before anything is fetched") {
  Workshop workshop;
  workshop.lock.wheels[0].size = std::uint64_t{1} << 49;
  CHECK_REFUSED(workshop.pack(), Space, "not enough room for the bundle");
  CHECK(workshop.server.requests().empty());
  CHECK_FALSE(fs::exists(workshop.dir / "out"));
}
