// SPDX-License-Identifier: Apache-2.0
// Real shells source what an installation left, in a prefix with an ugly name, before and after it was moved.
#include "installer/generations/activation.hpp"

#include "installer/generations/switch.hpp"
#include "installer/print/status_report.hpp"
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
      file_item("files/hello",
                "#!/bin/sh\necho \"hello ${PYTHONPATH-none} $PYTHONNOUSERSITE ${PYTHONPYCACHEPREFIX##*/.cache}\"\n",
                "bin/hello", true)};
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
    CHECK(in_shell(site, shell, kSh, site.odd.folder()) == "hello none 1 /sealift/pycache\n/users/own none\ngone\n");
  }
}

TEST_CASE("after the prefix was moved bash finds it by itself, and sh once switch has run") {
  const OddSite site;
  site.install();
  const Prefix moved(site.dir / "moved");
  fs::rename(site.odd.folder(), moved.folder());
  if (shell_is_there("bash"))
    CHECK(in_shell(site, "bash", kSh, moved.folder()) == "hello none 1 /sealift/pycache\n/users/own none\ngone\n");
  if (shell_is_there("dash"))
    CHECK(in_shell(site, "dash", ". \"$P/activate\"; echo $?\n", moved.folder()).find("hello") == std::string::npos);
  Disk disk;
  switch_to(moved, 1, disk);
  CHECK(in_shell(site, "sh", kSh, moved.folder()) == "hello none 1 /sealift/pycache\n/users/own none\ngone\n");
}

TEST_CASE("fish and csh activate a prefix and leave it again") {
  const OddSite site;
  site.install();
  if (shell_is_there("fish"))
    CHECK(
        in_shell(site, "fish",
                 "source $P/activate.fish; hello; sealift_deactivate; echo $PYTHONPATH; type -q hello; or echo gone\n",
                 site.odd.folder()) == "hello none 1 /sealift/pycache\n/users/own\ngone\n");
  if (shell_is_there("tcsh"))
    CHECK(in_shell(site, "tcsh -f",
                   "source \"$P/activate.csh\"\nhello\nsealift_deactivate\nwhich hello >& /dev/null || echo gone\n",
                   site.odd.folder()) == "hello none 1 /sealift/pycache\ngone\n");
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

namespace {

// Prints what is asked of it, and sets these variables.
TinyBundle with_variables() {
  TinyBundle tiny{.version = 1};
  tiny.items = {
      file_item("files/show", "#!/bin/sh\necho \"${A-none}|${DATA-none}|${WRITTEN-none}|${MINE-none}|${ODD-none}\"\n",
                "bin/show", true),
      file_item("environment/variables",
                "A=1\nDATA=${PREFIX}/data x\nMINE=theirs\nODD=it's \"$HOME\" `x` \\ !\nWRITTEN=${CACHE}/w\n",
                std::string(bundle::kVariablesPlace))};
  return tiny;
}

}  // namespace

TEST_CASE("activation sets the environment's variables but not over the user's own, and takes back what it has set") {
  const OddSite site;
  ApplyOptions here = site.options(site.make(with_variables()));
  here.prefix = site.odd;
  site.apply(here);
  const std::string root = site.odd.folder().string();
  const std::string set = "1|" + root + "/current/data x|/c/w|mine|it's \"$HOME\" `x` \\ !\n";
  const std::string back = "none|none|none|mine|none\n";
  for (const char* shell : {"sh", "dash", "bash", "zsh"}) {
    if (!shell_is_there(shell)) continue;
    INFO(shell);
    CHECK(in_shell(site, shell,
                   "XDG_CACHE_HOME=/c; MINE=mine; export XDG_CACHE_HOME MINE; set -eu\n. \"$P/activate\"\nshow\n. "
                   "\"$P/activate\"\n"
                   "show=$(command -v show)\nsealift_deactivate\n\"$show\"\n",
                   site.odd.folder()) == set + back);
  }
  if (shell_is_there("fish"))
    CHECK(
        in_shell(
            site, "fish",
            "set -gx XDG_CACHE_HOME /c; set -gx MINE mine; source $P/activate.fish; show; set show (command -v show); "
            "sealift_deactivate; $show\n",
            site.odd.folder()) == set + back);
  if (shell_is_there("tcsh"))
    CHECK(in_shell(site, "tcsh -f",
                   "setenv XDG_CACHE_HOME /c\nsetenv MINE mine\nsource \"$P/activate.csh\"\nshow\n"
                   "sealift_deactivate\n\"$P/current/bin/show\"\n",
                   site.odd.folder()) == set + back);
  const Status status = status_of(site.odd);
  REQUIRE(status.generations.size() == 1);
  CHECK(status.generations[0].variables.at("DATA") == "${PREFIX}/data x");
  CHECK(text_of(status).find("        sets      A=1\n") != std::string::npos);
  CHECK(json_of(status)["generations"][0]["variables"]["MINE"] == "theirs");
}

TEST_CASE("a generation without variables activates as before, and damaged ones are refused before the switch") {
  const Site site;
  site.apply(site.make(with_program()));
  CHECK(read_file(site.prefix().folder() / "activate").find("_sealift_set A") == std::string::npos);
  CHECK(read_file(site.prefix().folder() / "activate").find("@VARIABLES@") == std::string::npos);
  TinyBundle bad = with_program(2);
  bad.items.push_back(file_item("environment/variables", "LD_PRELOAD=x\n", std::string(bundle::kVariablesPlace)));
  CHECK_REFUSED(site.apply(site.make(bad, "bundle2")), Format, "share/sealift/environment");
  CHECK(current_generation(site.prefix()).value_or(0) == 1);
}
