// SPDX-License-Identifier: Apache-2.0
// Real shells source what an installation left, in a prefix with an ugly name, before and after it was moved.
#include "installer/generations/activation.hpp"

#include "installer/generations/switch.hpp"
#include "tests/installer/host_python.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

bool shell_is_there(const std::string& shell) {
  if (run_in_shell("command -v " + shell).output.find('/') != std::string::npos) return true;
  MESSAGE("skipped: there is no " << shell);
  return false;
}

TinyBundle with_program(std::uint64_t version = 1) {
  TinyBundle tiny{.version = version};
  tiny.items = {
      file_item("files/hello", "#!/bin/sh\necho \"hello ${PYTHONPATH-none} $PYTHONNOUSERSITE\"\n", "bin/hello", true)};
  return tiny;
}

struct OddSite : Site {
  Prefix odd{dir / "it's a $HOME `x` prefix"};
  Applied install() const {
    ApplyOptions here = options(make(with_program()));
    here.prefix = odd;
    return apply(here);
  }
};

// Runs `script` in `shell` with the prefix as $1 of a file, so that no quoting of ours is in the way.
std::string in_shell(const OddSite& site, const std::string& shell, const std::string& script, const fs::path& prefix) {
  write_file(site.dir / "script", script);
  return run_in_shell("cd / && P='" +
                      [&] {
                        std::string quoted;
                        for (const char c : prefix.string())
                          quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
                        return quoted;
                      }() +
                      "' PYTHONPATH=/users/own " + shell + " " + (site.dir / "script").string())
      .output;
}

constexpr const char* kSh =
    ". \"$P/activate\" && hello && . \"$P/activate\" && sealift_deactivate && "
    "echo \"$PYTHONPATH ${SEALIFT_PREFIX-none}\"; command -v hello || echo gone\n";

}  // namespace

TEST_CASE("sh, bash and zsh activate a prefix and leave it again") {
  const OddSite site;
  site.install();
  for (const char* shell : {"sh", "dash", "bash", "zsh"}) {
    if (!shell_is_there(shell)) continue;
    INFO(shell);
    CHECK(in_shell(site, shell, kSh, site.odd.folder()) == "hello none 1\n/users/own none\ngone\n");
  }
}

TEST_CASE("after the prefix was moved bash finds it by itself, and sh once switch has run") {
  const OddSite site;
  site.install();
  const Prefix moved(site.dir / "moved");
  fs::rename(site.odd.folder(), moved.folder());
  if (shell_is_there("bash"))
    CHECK(in_shell(site, "bash", kSh, moved.folder()) == "hello none 1\n/users/own none\ngone\n");
  if (shell_is_there("dash"))
    CHECK(in_shell(site, "dash", ". \"$P/activate\"; echo $?\n", moved.folder()).find("hello") == std::string::npos);
  Disk disk;
  switch_to(moved, 1, disk);
  CHECK(in_shell(site, "sh", kSh, moved.folder()) == "hello none 1\n/users/own none\ngone\n");
}

TEST_CASE("fish and csh activate a prefix and leave it again") {
  const OddSite site;
  site.install();
  if (shell_is_there("fish"))
    CHECK(
        in_shell(site, "fish",
                 "source $P/activate.fish; hello; sealift_deactivate; echo $PYTHONPATH; type -q hello; or echo gone\n",
                 site.odd.folder()) == "hello none 1\n/users/own\ngone\n");
  if (shell_is_there("tcsh"))
    CHECK(in_shell(site, "tcsh -f",
                   "source \"$P/activate.csh\"\nhello\nsealift_deactivate\nwhich hello >& /dev/null || echo gone\n",
                   site.odd.folder()) == "hello none 1\ngone\n");
}

TEST_CASE("Lmod's modulefile names the prefix by where it lies itself") {
  const OddSite site;
  site.install();
  const std::string lua = read_file(site.odd.folder() / "modulefiles/tiny.lua");
  CHECK(lua.find("myFileName()") != std::string::npos);
  CHECK(lua.find(site.odd.folder().string()) == std::string::npos);
  if (!fs::exists("/usr/share/lmod/lmod/libexec/lmod")) {
    MESSAGE("skipped: there is no Lmod");
    return;
  }
  const fs::path plain = site.dir / "plain";  // shells of Lmod's own quoting are not what is tested here
  fs::rename(site.odd.folder(), plain);
  write_file(site.dir / "script",
             "MODULEPATH=" + (plain / "modulefiles").string() + " /usr/share/lmod/lmod/libexec/lmod bash load tiny\n");
  const std::string said = run_in_shell("bash " + (site.dir / "script").string()).output;
  INFO(said);
  CHECK(said.find((plain / "current/bin").string()) != std::string::npos);
}

TEST_CASE("activation files are written once, and again only when they would say something else") {
  const Site site;
  site.apply(site.make(with_program()));
  const auto before = snapshot(site.prefix().folder() / "modulefiles");
  const struct stat first = status_of_path(site.prefix().folder() / "activate");
  site.apply(site.make(with_program(2), "bundle2"));
  CHECK(snapshot(site.prefix().folder() / "modulefiles") == before);
  CHECK(status_of_path(site.prefix().folder() / "activate").st_ino == first.st_ino);
  CHECK((first.st_mode & 07777) == 0444);
  fs::remove(site.prefix().folder() / "activate");
  write_file(site.prefix().folder() / "activate", "something else\n");
  site.apply(site.make(with_program(3), "bundle3"));
  CHECK(read_file(site.prefix().folder() / "activate").find("sealift_deactivate") != std::string::npos);
}
