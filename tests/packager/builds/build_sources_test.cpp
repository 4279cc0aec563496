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
  CHECK(run_checked({"tar", "--exclude=.git", "-tf", yard.cache.path(wheel.built_from->sha256).string()}) ==
        "backend.py\npyproject.toml\n");
  CHECK(store_source(source, yard.cache, yard.dir.path(), {}, yard.progress) == wheel.built_from->sha256);
  fs::remove_all(source.folder);
  fs::remove(yard.cache.path(wheel.sha256));
  yard.rebuild(wheel);
  CHECK(yard.cache.contains(wheel.sha256));
  fs::remove(yard.cache.path(wheel.sha256));
  fs::remove(yard.cache.path(wheel.built_from->sha256));
  CHECK_REFUSED(yard.rebuild(wheel), Missing, "got:      demo");
}

namespace {

// A project whose version git tells, and whose wheel has the files that git tracks; and its repository, tagged.
SourcePackage described(Yard& yard, const std::string& more = {}) {
  SourcePackage source = yard.folder("mine", R"(
import os, subprocess
git = lambda *words: subprocess.run(["git", *words], capture_output=True, text=True).stdout
VERSION = git("describe", "--tags", "--dirty").strip()[1:] or "0+unknown"
FILES = {path: open(path, "rb").read() for path in git("ls-files", "demo").split()}
FILES["demo/archived.txt"] = str("stages.yaml" in git("archive", "HEAD")).encode()
assert "url" not in open(".git/config").read() and not os.path.exists(".git/logs")
assert git("status", "--porcelain", "--untracked-files=no") == ""
)");
  write_file(source.folder / "demo/__init__.py", "");
  write_file(source.folder / "demo/stages.yaml", "stages: 3\n");
  if (!more.empty()) write_file(source.folder / more, "x");
  return source;
}

std::string git_in(const fs::path& folder, std::vector<std::string> words) {
  words.insert(words.begin(), {"git", "-C", folder.string(), "-c", "user.name=t", "-c", "user.email=t@t.invalid"});
  return run_checked(words);
}

void commit_all(const SourcePackage& source, const std::string& tag) {
  git_in(source.folder, {"init", "--quiet"});
  git_in(source.folder, {"add", "."});
  git_in(source.folder, {"commit", "--quiet", "-m", "one"});
  git_in(source.folder, {"tag", "-a", tag, "-m", tag});
}

}  // namespace

TEST_CASE("a build asks git for version and tracked files as in a checkout, and sees no address of its repository") {
  if (no_tools()) return;
  Yard yard;
  SourcePackage source = described(yard);
  commit_all(source, "v3.2");
  git_in(source.folder, {"config", "remote.origin.url", "https://me:secret@h.invalid/x.git"});
  SUBCASE("a commit") {
    source.kind = SourceKind::Git;
    source.url = "file://" + source.folder.string();
    source.commit = git_in(source.folder, {"rev-parse", "HEAD"}).substr(0, 40);
  }
  SUBCASE("a folder that is a checkout") {}
  const LockedWheel wheel = yard.build({source}).wheels.at(0);
  CHECK(wheel.version == "3.2");
  CHECK(yard.text_of(wheel, "demo/stages.yaml") == "stages: 3\n");
  CHECK(yard.text_of(wheel, "demo/archived.txt") == "True");
  CHECK(yard.build({source}).wheels.at(0).built_from->sha256 == wheel.built_from->sha256);
  fs::remove(yard.cache.path(wheel.sha256));
  yard.rebuild(wheel);
  CHECK(yard.cache.contains(wheel.sha256));
}

TEST_CASE("a later commit and a change in a checkout are in the version that git tells, and other branches are not") {
  if (no_tools()) return;
  Yard yard;
  const SourcePackage source = described(yard);
  commit_all(source, "v3.2");
  git_in(source.folder, {"checkout", "--quiet", "-b", "other"});
  git_in(source.folder, {"commit", "--quiet", "--allow-empty", "-m", "two"});
  git_in(source.folder, {"tag", "v9"});
  git_in(source.folder, {"checkout", "--quiet", "-"});
  write_file(source.folder / "source.py",
             read_file(source.folder / "source.py") + "VERSION = VERSION.replace('-', '+', 1).replace('-', '.')\n");
  const bundle::Error dirty = test::refusal([&] { yard.build({source}); });  // its own assertion
  CHECK(test::mentions(dirty, "AssertionError"));
  git_in(source.folder, {"commit", "--quiet", "-a", "-m", "three"});
  const std::string version = yard.build({source}).wheels.at(0).version;
  CHECK(version.starts_with("3.2+1"));
}

TEST_CASE("what Git LFS keeps is fetched from a repository of this machine, and what cannot be is named") {
  if (no_tools()) return;
  Yard yard;
  SourcePackage source = described(yard);
  const std::string bytes(22'000, 'w'), hex = bundle::sha256(bundle::as_bytes(bytes)).hex();
  write_file(source.folder / ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
  write_file(source.folder / "demo/model.bin",
             "version https://git-lfs.github.com/spec/v1\noid sha256:" + hex + "\nsize 22000\n");
  commit_all(source, "v1");
  source.kind = SourceKind::Git;
  source.url = "file://" + source.folder.string();
  source.commit = git_in(source.folder, {"rev-parse", "HEAD"}).substr(0, 40);
  std::FILE* said = std::tmpfile();
  bundle::Progress progress(said);
  const auto built = [&] {
    return build_sources({source}, yard.tools, yard.target, yard.cache, progress, {}).wheels.at(0);
  };
  CHECK(yard.text_of(built(), "demo/model.bin").size() < 200);
  std::rewind(said);
  std::string text(10'000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), said));
  std::fclose(said);
  CHECK(text.find("1 file(s) whose bytes only Git LFS has, such as demo/model.bin") != text.npos);
  write_file(source.folder / (".git/lfs/objects/" + hex.substr(0, 2) + "/" + hex.substr(2, 2) + "/" + hex), bytes);
  const LockedWheel wheel = yard.build({source}).wheels.at(0);
  CHECK(yard.text_of(wheel, "demo/model.bin") == bytes);
  CHECK(wheel.version == "1");  // and git finds nothing changed
}

TEST_CASE("links of a folder to what lies beside it are followed, and no others") {
  if (no_tools()) return;
  Yard yard;
  const SourcePackage source = yard.folder("mono/pkg", R"(
import os
FILES = {os.path.join(at, name)[2:]: open(os.path.join(at, name), "rb").read()
         for at, _, names in os.walk("./demo") for name in names}
)");
  fs::create_directories(source.folder / "demo");
  write_file(yard.dir / "mono/shared/VERSION", "3\n");
  write_file(yard.dir / "mono/shared/data/a.json", "{}\n");
  write_file(yard.dir / "secret", "secret");
  fs::create_symlink("../../shared/VERSION", source.folder / "demo/VERSION");
  fs::create_directory_symlink("../../shared/data", source.folder / "demo/data");
  const LockedWheel wheel = yard.build({source}).wheels.at(0);
  CHECK(yard.text_of(wheel, "demo/VERSION") == "3\n");
  CHECK(yard.text_of(wheel, "demo/data/a.json") == "{}\n");
  SUBCASE("further up") {
    fs::create_symlink("../../../secret", source.folder / "demo/up");
  }
  SUBCASE("by an absolute path") {
    fs::create_symlink(yard.dir / "secret", source.folder / "demo/up");
  }
  SUBCASE("by way of another link") {
    fs::create_symlink("../../secret", yard.dir / "mono/shared/up");
    fs::create_symlink("../../shared/up", source.folder / "demo/up");
  }
  SUBCASE("to what holds it") {
    fs::create_directory_symlink("../../../mono", source.folder / "demo/up");
  }
  CHECK_REFUSED(yard.build({source}), Format, "a link leaves the tree");
  const fs::path link = source.folder / "demo/up";
  fs::remove(link);  // as the refusal says
  write_file(link, "what it led to");
  CHECK(yard.text_of(yard.build({source}).wheels.at(0), "demo/up") == "what it led to");
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
  bundle::Progress silent(nullptr);
  const bundle::Error error =
      test::refusal([&] { store_source(package, Cache(dir / "cache"), dir / "scratch", {}, silent); });
  ::setenv("PATH", path.c_str(), 1);
  CHECK(error.code() == bundle::ErrorCode::Network);
  CHECK_FALSE(test::mentions(error, "sec"));
  CHECK(read_file(dir / "arguments").find("https://h.invalid:8443/demo.git") != std::string::npos);
  CHECK(read_file(dir / "arguments").find("sec") == std::string::npos);
  CHECK(read_file(dir / "answers") == "protocol=https\nhost=h.invalid:8443\nusername=me@work\npassword=sec/ret\n");
  CHECK(login_of("https://me:x@h/y")->server == "https://h");
  CHECK_FALSE(login_of("ssh://git@h/y"));
}
