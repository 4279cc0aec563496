// SPDX-License-Identifier: Apache-2.0
// Real shells source what an installation left, in a prefix with an ugly name, before and after it was moved.
#include "installer/activation/activation.hpp"

#include "installer/generations/generation.hpp"
#include "installer/print/status_report.hpp"
#include "installer/upkeep/set_repository.hpp"
#include "installer/upkeep/switch.hpp"
#include "tests/installer/host_python.hpp"
#include "tests/support/left_out.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

bool shell_is_there(const std::string& shell) {
  if (run_in_shell("command -v " + shell).output.find('/') != std::string::npos) return true;
  sealift::test::left_out("there is no ", shell);
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
std::string in_shell(const OddSite& site, const std::string& shell, const std::string& script, const fs::path& prefix,
                     const std::string& cache = "-u XDG_CACHE_HOME") {
  write_file(site.dir / "script", script);
  return run_in_shell("cd / && P='" +
                      [&] {
                        std::string quoted;
                        for (const char c : prefix.string())
                          quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
                        return quoted;
                      }() +
                      "' PYTHONPATH=/users/own env " + cache + " " + shell + " " + (site.dir / "script").string())
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
  for (const std::string folder : {"", "/a b"}) {
    const std::string cache = folder.empty() ? "-u XDG_CACHE_HOME" : "XDG_CACHE_HOME='" + folder + "'";
    const std::string hello = "hello none 1 " + folder + "/sealift/pycache\n";
    INFO(cache);
    if (shell_is_there("fish"))
      CHECK(in_shell(site, "fish",
                     "source $P/activate.fish; hello; sealift_deactivate; echo $PYTHONPATH; type -q hello; or echo "
                     "gone\n",
                     site.odd.folder(), cache) == hello + "/users/own\ngone\n");
    if (shell_is_there("tcsh"))
      CHECK(in_shell(site, "tcsh -f",
                     "source \"$P/activate.csh\"\nhello\nsealift_deactivate\nwhich hello >& /dev/null || echo gone\n",
                     site.odd.folder(), cache) == hello + "gone\n");
  }
}

TEST_CASE("Lmod's modulefile names the prefix by where it lies itself") {
  const OddSite site;
  site.install();
  const std::string lua = read_file(site.odd.folder() / "modulefiles/tiny.lua");
  CHECK(lua.find("myFileName()") != std::string::npos);
  CHECK(lua.find(site.odd.folder().string()) == std::string::npos);
  if (!fs::exists("/usr/share/lmod/lmod/libexec/lmod")) {
    sealift::test::left_out("there is no Lmod");
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
  const auto before = snapshot(site.prefix().modulefiles());
  const struct stat first = status_of_path(site.prefix().folder() / "activate");
  site.apply(site.make(with_program(2), "bundle2"));
  auto after = snapshot(site.prefix().modulefiles());
  CHECK(before.size() == 4);
  CHECK(after.erase("tiny-0002") + after.erase("tiny-0002.lua") == 2);
  CHECK(after == before);
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
      file_item("files/show",
                "#!/bin/sh\necho "
                "\"${SITE_A-none}|${SITE_DATA-none}|${SITE_WRITTEN-none}|${SITE_MINE-none}|${SITE_ODD-none}\"\n",
                "bin/show", true),
      file_item("environment/variables",
                "SITE_A=1\nSITE_DATA=${PREFIX}/data x\nSITE_MINE=theirs\nSITE_ODD=it's \"$HOME\" `x` \\ !\n"
                "SITE_WRITTEN=${CACHE}/w\n",
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
    CHECK(in_shell(
              site, shell,
              "XDG_CACHE_HOME=/c; SITE_MINE=mine; export XDG_CACHE_HOME SITE_MINE; set -eu\n. \"$P/activate\"\nshow\n. "
              "\"$P/activate\"\n"
              "show=$(command -v show)\nsealift_deactivate\n\"$show\"\n",
              site.odd.folder()) == set + back);
  }
  if (shell_is_there("fish"))
    CHECK(in_shell(site, "fish",
                   "set -gx XDG_CACHE_HOME /c; set -gx SITE_MINE mine; source $P/activate.fish; show; set show "
                   "(command -v show); "
                   "sealift_deactivate; $show\n",
                   site.odd.folder()) == set + back);
  if (shell_is_there("tcsh"))
    CHECK(in_shell(site, "tcsh -f",
                   "setenv XDG_CACHE_HOME /c\nsetenv SITE_MINE mine\nsource \"$P/activate.csh\"\nshow\n"
                   "sealift_deactivate\n\"$P/current/bin/show\"\n",
                   site.odd.folder()) == set + back);
  const Status status = status_of(site.odd);
  REQUIRE(status.generations.size() == 1);
  CHECK(status.generations[0].variables.at("SITE_DATA") == "${PREFIX}/data x");
  CHECK(text_of(status).find("        sets      SITE_A=1\n") != std::string::npos);
  CHECK(json_of(status)["generations"][0]["variables"]["SITE_MINE"] == "theirs");
}

TEST_CASE("a prefix whose name holds words of the templates activates as any other, and none of them is filled in") {
  OddSite site;
  site.odd = Prefix(site.dir / "@VARIABLES@ @PREFIX@ @GONE@ @WHICH@'s");
  ApplyOptions here = site.options(site.make(with_variables()));
  here.prefix = site.odd;
  site.apply(here);
  const std::string root = site.odd.folder().string();
  const std::string shown = "1|" + root + "/current/data x|/c/w|theirs|it's \"$HOME\" `x` \\ !\n" + root + "\n";
  const std::string script =
      "XDG_CACHE_HOME=/c; export XDG_CACHE_HOME; set -eu\n. \"$P/activate\"\nshow\n"
      "echo \"$SEALIFT_PREFIX\"\n";
  for (const char* shell : {"sh", "dash", "bash"})
    if (shell_is_there(shell)) CHECK(in_shell(site, shell, script, site.odd.folder()) == shown);
  for (const char* file : {"activate", "activate.csh", "modulefiles/tiny"}) {
    CAPTURE(file);
    const std::string text = read_file(site.odd.folder() / file);
    CHECK(text.find("VARIABLES") != std::string::npos);  // of the name
    CHECK(text.find("@FOLDER@") == std::string::npos);
  }
}

TEST_CASE("a generation without variables activates as before, and damaged ones are refused before the switch") {
  const Site site;
  site.apply(site.make(with_program()));
  CHECK(read_file(site.prefix().folder() / "activate").find("_sealift_set SITE_") == std::string::npos);
  CHECK(read_file(site.prefix().folder() / "activate").find("@VARIABLES@") == std::string::npos);
  TinyBundle bad = with_program(2);
  bad.items.push_back(file_item("environment/variables", "LD_PRELOAD=x\n", std::string(bundle::kVariablesPlace)));
  CHECK_REFUSED(site.apply(site.make(bad, "bundle2")), Format, "share/sealift/environment");
  CHECK(current_generation(site.prefix()).value_or(0) == 1);
}

TEST_CASE("the Tcl modulefile sets the same, of `current` or of one generation for good") {
  if (!shell_is_there("tclsh")) return;
  const OddSite site;
  ApplyOptions here = site.options(site.make(with_variables()));
  here.prefix = site.odd;
  site.apply(here);
  write_file(site.dir / "module.tcl",
             "proc setenv {name value} { set ::env($name) $value; puts \"$name=$value\" }\n"
             "proc unsetenv {name} { puts \"-$name\" }\nproc prepend-path {name value} { puts \"$name<$value\" }\n"
             "proc module-whatis {text} {}\nset ModulesCurrentModulefile [lindex $argv 0]\n"
             "foreach once 1 { source $ModulesCurrentModulefile }\n");
  const auto said = [&](const std::string& name) {
    write_file(site.dir / "script", "cd / && XDG_CACHE_HOME=/c SITE_MINE=mine tclsh " +
                                        (site.dir / "module.tcl").string() + " \"$1/modulefiles/" + name + "\"\n");
    return run_in_shell("sh " + (site.dir / "script").string() + " \"" +
                        (site.dir / "it's a \\$HOME \\`x\\` prefix").string() + "\"")
        .output;
  };
  const auto expected = [&](const std::string& folder) {
    const std::string root = site.odd.folder().string();
    const std::string at = root + "/" + folder, note = "_SEALIFT_SET_";
    return "-PYTHONPATH\n-PYTHONHOME\nPYTHONNOUSERSITE=1\nSEALIFT_PREFIX=" + root + "\nPATH<" + at +
           "/bin\nPYTHONPYCACHEPREFIX=/c/sealift/pycache\n" + note + "PYTHONPYCACHEPREFIX=1\nSITE_A=1\n" + note +
           "SITE_A=1\nSITE_DATA=" + at + "/data x\n" + note + "SITE_DATA=1\nSITE_ODD=it's \"$HOME\" `x` \\ !\n" + note +
           "SITE_ODD=1\nSITE_WRITTEN=/c/w\n" + note + "SITE_WRITTEN=1\n";
  };
  CHECK(said("tiny") == expected("current"));
  CHECK(said("tiny-0001") == expected("generations/0001"));
  fs::rename(site.odd.generation(1), site.odd.folder() / "gone");
  CHECK(said("tiny-0001").starts_with("there is no environment in"));
}

TEST_CASE("the site's repository is told once, and what uses the prefix afterwards asks there") {
  const OddSite site;
  site.install();
  Disk disk;
  const std::string clients = "$PIP_INDEX_URL $UV_DEFAULT_INDEX $HF_ENDPOINT $MODELSCOPE_ENDPOINT";
  const std::string script =
      "unset SSL_CERT_FILE REQUESTS_CA_BUNDLE PIP_CERT; HF_ENDPOINT=http://mine; . \"$P/activate\"; echo " + clients +
      " ${SSL_CERT_FILE-none}; sealift_deactivate; echo " + "${PIP_INDEX_URL-none} $HF_ENDPOINT\n";
  const std::string pem = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n";
  write_file(site.dir / "ca.pem", pem);
  CHECK(set_repository(site.odd, "https://[::1]:8443/env/", site.dir / "ca.pem", disk).repository ==
        "https://[::1]:8443/env");
  const std::string index = "https://[::1]:8443/env/simple/ ";
  const std::string certificates = site.odd.folder().string() + "/site/certificates.pem";
  CHECK(in_shell(site, "sh", script, site.odd.folder()) ==
        index + index + "http://mine https://[::1]:8443/env " + certificates + "\nnone http://mine\n");
  CHECK(read_file(certificates) == pem);
  for (const char* name : {"tiny", "tiny.lua", "tiny-0001", "tiny-0001.lua"})
    CHECK(read_file(site.odd.modulefiles() / name).find("PIP_INDEX_URL") != std::string::npos);
  set_repository(site.odd, "http://packages", {}, disk);
  CHECK(site_settings(site.odd).certificates.empty());
  CHECK_FALSE(fs::exists(certificates));
  set_repository(site.odd, "", {}, disk);
  CHECK(read_file(site.odd.folder() / "activate").find("PIP_INDEX_URL") == std::string::npos);
}

TEST_CASE("a repository's address that is no plain URL is refused, and so is a key among certificates") {
  const Site site;
  site.apply(site.make(with_program()));
  Disk disk;
  const auto before = snapshot(site.prefix().folder());
  for (const char* url :
       {"ftp://host", "packages.site", "http://", "https:///x", "http://:80/", "https://user:secret@host/",
        "http://h/$(x)", "http://h/`x`", "http://h/a b", "http://h/'", "http://h/\"", "http://h;x", "http://h/?q",
        "http://h/#f", "http://h/%0a", "http://h\nindex-url=x", "http://h/{x}", "http://h/\xc3\xa4", "HTTP://h"})
    CHECK_REFUSED(set_repository(site.prefix(), url, {}, disk), Usage, "address of a repository");
  CHECK_REFUSED(set_repository(site.prefix(), "http://" + std::string(1000, 'h'), {}, disk), Usage, "1000");
  write_file(site.dir / "key.pem", "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n");
  CHECK_REFUSED(set_repository(site.prefix(), "http://h", site.dir / "key.pem", disk), Format, "private key");
  write_file(site.dir / "empty.pem", "");
  CHECK_REFUSED(set_repository(site.prefix(), "http://h", site.dir / "empty.pem", disk), Format, "no certificate");
  CHECK_REFUSED(set_repository(Prefix(site.dir / "none"), "http://h", {}, disk), Missing, "no prefix");
  CHECK(snapshot(site.prefix().folder()) == before);
  write_file(site.prefix().site() / "repository", "http://h/$(x)\n");
  CHECK_REFUSED(switch_to(site.prefix(), 1, disk), Format, "remembered repository");
}

TEST_CASE("a Jupyter kernel is offered where the bundle brings one, and starts what is current") {
  const Site site;
  TinyBundle tiny = with_program();
  site.apply(site.make(tiny));
  CHECK_FALSE(fs::exists(site.prefix().folder() / "kernels"));
  tiny.version = 2;
  tiny.items.push_back(wheel_item({.name = "ipykernel", .files = {{"ipykernel/__init__.py", ""}}}));
  site.apply(site.make(tiny, "bundle2"));
  const std::string text = read_file(site.prefix().folder() / "kernels/tiny/kernel.json");
  const bundle::Json spec = bundle::parse_json(text, "kernel.json");
  CHECK(spec["argv"][0] == (site.current() / "bin/python3").string());
  CHECK(spec["argv"][4] == "{connection_file}");
  CHECK(spec["display_name"] == "tiny");
}
