// SPDX-License-Identifier: Apache-2.0
// The real sealift-install on a terminal, a pseudo one: what it asks there, and that it asks nowhere else.
#include <pty.h>

#include <csignal>

#include "tests/installer/program.hpp"
#include "tests/support/left_out.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

// The program with a terminal as stdin, stdout and stderr.
class OnTerminal {
 public:
  explicit OnTerminal(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), SEALIFT_INSTALL);
    std::vector<char*> list;
    for (std::string& argument : arguments) list.push_back(argument.data());
    list.push_back(nullptr);
    child_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (child_ == 0) {
      ::execv(list[0], list.data());
      ::_exit(98);
    }
  }
  ~OnTerminal() { ::close(terminal_); }

  // Everything that was written until `text` has come, or the program has ended.
  std::string read_until(const std::string& text) {
    std::string seen;
    char piece[1024];
    for (ssize_t count; seen.find(text) == std::string::npos && (count = ::read(terminal_, piece, sizeof piece)) > 0;)
      seen.append(piece, static_cast<std::size_t>(count));
    return seen;
  }
  void type(const std::string& line) { type_raw(line + "\n"); }
  void type_raw(const std::string& text) {
    [[maybe_unused]] const ssize_t written = ::write(terminal_, text.data(), text.size());
  }
  int finish() {
    read_until("\x01");  // to its end
    int status = 0;
    ::waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  int terminal_ = -1;
  pid_t child_ = 0;
};

// A bare chroot has no /dev/pts.
bool can_have_terminals() {
  int terminal = -1, program = -1;
  if (::openpty(&terminal, &program, nullptr, nullptr, nullptr) != 0) return false;
  ::close(terminal);
  ::close(program);
  return true;
}

struct TwoDiscs : Site {
  MadeBundle made;
  fs::path shelf = dir / "shelf";

  TwoDiscs() {
    TinyBundle tiny{.arch = probe().target.arch, .volume_size = 8192};
    tiny.items = {file_item("files/numbers", numbers_text(7, 3000), "share/numbers")};
    made = make(tiny);
    fs::create_directories(shelf);
    fs::rename(made.volume(1), shelf / made.volume(1).filename());
  }
  std::vector<std::string> arguments() const {
    return {"apply", made.folder, "--fingerprint", made.fingerprint(), "--prefix", prefix().folder()};
  }
};

}  // namespace

TEST_CASE("on a terminal apply asks for the missing disc, takes Enter or a folder, and gives up on q") {
  if (!can_have_terminals()) {
    sealift::test::left_out("no pseudo terminal is to be had here");
    return;
  }
  const TwoDiscs site;
  OnTerminal program(site.arguments());
  const std::string question = program.read_until("give up: ");
  CHECK(question.find("Put in the disc with tiny-1.vol002") != std::string::npos);
  SUBCASE("Enter, with the disc still out: asked again; then put in") {
    program.type("");
    CHECK(program.read_until("give up: ").find("tiny-1.vol002") != std::string::npos);
    fs::rename(site.shelf / "tiny-1.vol002", site.made.volume(1));
    program.type("");
    CHECK(program.finish() == 0);
    CHECK(read_file(site.current() / "share/numbers") == numbers_text(7, 3000));
  }
  SUBCASE("a folder") {
    program.type(site.shelf);
    CHECK(program.finish() == 0);
    CHECK(read_file(site.current() / "share/numbers") == numbers_text(7, 3000));
  }
  SUBCASE("q") {
    program.type("q");
    CHECK(program.finish() == 7);
    CHECK(!fs::exists(site.current()));
  }
  SUBCASE("Ctrl-C") {
    program.type_raw("\x03");
    CHECK(program.read_until("goes on from here").find("stopped; what was current before still is") !=
          std::string::npos);
    CHECK(program.finish() == 128 + SIGINT);
    CHECK(!fs::exists(site.current()));
  }
}

TEST_CASE("without a terminal nobody is asked, and --volumes names the folder") {
  const TwoDiscs site;
  const Outcome missing = run(site.dir, site.arguments());
  CHECK(missing.exit == 7);
  CHECK(missing.err.find("tiny-1.vol002") != std::string::npos);
  CHECK(missing.err.find("Enter") == std::string::npos);
  std::vector<std::string> arguments = site.arguments();
  arguments.insert(arguments.end(), {"--volumes", site.shelf});
  for (const char* verb : {"plan", "verify", "apply"}) {
    arguments.front() = verb;
    CHECK(run(site.dir, arguments).exit == 0);
  }
}
