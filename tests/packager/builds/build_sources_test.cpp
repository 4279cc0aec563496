// SPDX-License-Identifier: Apache-2.0
// Sources in folders and git repositories.
#include "packager/builds/built_wheels.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "packager/builds/source_tree.hpp"
#include "packager/host/process.hpp"
#include "packager/host/url.hpp"
#include "tests/packager/builds/yard.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::kPython;
using sealift::test::no_tools;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;
using sealift::test::Yard;
namespace fs = std::filesystem;

TEST_CASE("folders and git commits are built from a tar that stays in the cache") {
  if (no_tools()) return;
  Yard yard;
  SourcePackage source = yard.folder("mine");
  write_file(source.folder / "venv/pyvenv.cfg", "");
  write_file(source.folder / "venv/large", "x");
  SUBCASE("a folder") {}
  SUBCASE("a commit") {
    const auto git = [&](std::vector<std::string> words) {
      words.insert(words.begin(),
                   {"git", "-C", source.folder.string(), "-c", "user.name=t", "-c", "user.email=t@t.invalid"});
      return run_checked(words);
    };
    git({"init", "--quiet"});
    git({"add", "pyproject.toml", "backend.py"});
    git({"commit", "--quiet", "-m", "one"});
    source.kind = SourceKind::Git;
    source.url = "file://" + source.folder.string();
    source.commit = git({"rev-parse", "HEAD"}).substr(0, 40);
    source.version = "1.0";
  }
  const LockedWheel wheel = yard.build({source}).wheels.at(0);
  CHECK(wheel.version == "1.0");
  CHECK(wheel.built_from->kind == source.kind);
  CHECK(run_checked({"tar", "-tf", yard.cache.path(wheel.built_from->sha256).string()}) ==
        "backend.py\npyproject.toml\n");
  CHECK(store_source(source, yard.cache, yard.dir.path()) == wheel.built_from->sha256);
  fs::remove_all(source.folder);
  fs::remove(yard.cache.path(wheel.sha256));
  yard.rebuild(wheel);
  CHECK(yard.cache.contains(wheel.sha256));
  fs::remove(yard.cache.path(wheel.sha256));
  fs::remove(yard.cache.path(wheel.built_from->sha256));
  CHECK_REFUSED(yard.rebuild(wheel), Missing, "got:      demo");
}

TEST_CASE("a commit whose version only its tags tell is built with it, and sees no address of its repository") {
  if (no_tools()) return;
  Yard yard;
  SourcePackage source = yard.folder("mine", R"(
import os, subprocess
VERSION = os.environ.get("SETUPTOOLS_SCM_PRETEND_VERSION")
if VERSION is None:
    VERSION = subprocess.check_output(["git", "describe", "--tags"], text=True).strip()[1:]
    assert "url" not in open(".git/config").read() and not os.path.exists(".git/logs")
)");
  const auto git = [&](std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"git", "-C", source.folder.string(), "-c", "user.name=t", "-c", "user.email=t@t.invalid"});
    return run_checked(words);
  };
  git({"init", "--quiet"});
  git({"add", "."});
  git({"commit", "--quiet", "-m", "one"});
  git({"tag", "v3.2"});
  source.kind = SourceKind::Git;
  source.url = "file://" + source.folder.string();
  source.commit = git({"rev-parse", "HEAD"}).substr(0, 40);
  const LockedWheel wheel = yard.build({source}).wheels.at(0);
  CHECK(wheel.version == "3.2");
  fs::remove(yard.cache.path(wheel.sha256));
  yard.rebuild(wheel);
  CHECK(yard.cache.contains(wheel.sha256));
}

TEST_CASE("a password in a repository's address is no argument of git, and its server alone gets it") {
  TempDir dir;
  write_file(dir / "bin/git",
             "#!/bin/bash\necho \"$@\" >> '" + (dir / "arguments").string() +
                 "'\nkept=()\nwhile [ \"$1\" = -c ]; do kept+=(-c \"$2\"); shift 2; done\n"
                 "for host in h.invalid:8443 other.invalid; do printf 'protocol=https\\nhost=%s\\n\\n' $host |\n"
                 "  /usr/bin/git \"${kept[@]}\" credential fill >> '" +
                 (dir / "answers").string() + "' 2>> '" + (dir / "said").string() + "'; done\nexit 1\n");
  fs::permissions(dir / "bin/git", fs::perms(0755));
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", ((dir / "bin").string() + ":" + path).c_str(), 1);
  ::setenv("HOME", dir.path().c_str(), 1);
  SourcePackage package{.name = "demo"};
  package.kind = SourceKind::Git;
  package.url = "https://me%40work:sec%2Fret@h.invalid:8443/demo.git";
  package.commit = std::string(40, 'a');
  const bundle::Error error = test::refusal([&] { store_source(package, Cache(dir / "cache"), dir / "scratch"); });
  ::setenv("PATH", path.c_str(), 1);
  CHECK(error.code() == bundle::ErrorCode::Network);
  CHECK_FALSE(test::mentions(error, "sec"));
  CHECK(read_file(dir / "arguments").find("https://h.invalid:8443/demo.git") != std::string::npos);
  CHECK(read_file(dir / "arguments").find("sec") == std::string::npos);
  CHECK(read_file(dir / "answers") == "protocol=https\nhost=h.invalid:8443\nusername=me@work\npassword=sec/ret\n");
  CHECK(login_of("https://me:x@h/y")->server == "https://h");
  CHECK_FALSE(login_of("ssh://git@h/y"));
}
