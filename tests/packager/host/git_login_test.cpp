// SPDX-License-Identifier: Apache-2.0
// Logins of repositories: taken out of each text that uv gets, given to git alone, and refused where they are unclear.
#include "packager/host/git_login.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "packager/host/process.hpp"
#include "packager/resolve/input_logins.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift::packager;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;

namespace {

// What the real git is told for an address, with these variables and no configuration of a user or system.
std::string git_told(const GitLogins& logins, const std::string& host, const std::string& path) {
  std::map<std::string, std::string> variables = logins.variables();
  variables["PATH"] = "/usr/bin:/bin";
  variables["GIT_CONFIG_GLOBAL"] = variables["GIT_CONFIG_SYSTEM"] = "/dev/null";
  variables["ASKED"] = "protocol=https\nhost=" + host + "\npath=" + path + "\n\n";
  const ProcessResult result = run_in({"sh", "-c", "printf '%s' \"$ASKED\" | git credential fill"}, variables);
  return result.exit_code == 0 ? result.out.substr(result.out.find("username")) : "nothing";
}

}  // namespace

TEST_CASE("a repository's login is taken out of its address, wherever this stands, and nothing else is changed") {
  GitLogins logins;
  const auto taken = [&](const std::string& text) { return logins.take(text, "job.toml"); };
  CHECK(taken("a @ git+https://me:x%40y@h/a.git@v1#subdirectory=b ; extra == 'c'") ==
        "a @ git+https://h/a.git@v1#subdirectory=b ; extra == 'c'");
  CHECK(taken("requires = [\"b @ GIT+HTTP://you:z@h:8080/b\", \"c @ git+https://token@other/c\"]") ==
        "requires = [\"b @ GIT+HTTP://h:8080/b\", \"c @ git+https://other/c\"]");
  CHECK_FALSE(logins.empty());
  GitLogins none;
  for (const char* text : {"a @ git+https://h/a@v1", "a @ git+ssh://git@h/a", "a @ https://me:x@h/a.whl",
                           "git+file:///a", "a @ git+https://h/b/c@d@e", "git+http", "git+https", "git+https://"})
    CHECK(none.take(text, "") == text);
  CHECK(none.empty());
  CHECK(none.variables().size() == 1);  // git asks nobody at the terminal
}

TEST_CASE("a login that cannot be told from its host is refused, and no part of it is shown") {
  for (const char* text :
       {"a @ git+https://me:x@secret@h/a", "a @ git+https://me:sec/ret@h/a", "a @ git+https://me:sec?ret@h/a",
        "a @ git+https://me:sec#ret@h/a", "a @ git+https://me:secret@h:port/a", "a @ git+https://me:sec%ret@h/a",
        "a @ git+https://me:sec\\ret@h/a", "a @ git+https://me:${SEALIFT_NOT_SET}@h/a", "a @ git+https://me:${x@h/a",
        "a @ git+https://me:sec%0Aret@h/a", "a @ git+https://me:sec%0dret@h/a", "a @ git+https://me%00:secret@h/a"}) {
    CAPTURE(std::string(text));
    GitLogins logins;
    const auto error = sealift::test::refusal([&] { logins.take(text, "job.toml, [python]"); });
    CHECK(error.code() == sealift::bundle::ErrorCode::Usage);
    CHECK(sealift::test::mentions(error, "job.toml, [python]"));
    CHECK(sealift::test::mentions(error, "git+https://"));
    for (const char* part : {"sec", "ret", "me:"}) CHECK(error.facts().got.find(part) == std::string::npos);
    CHECK(logins.empty());
  }
  GitLogins logins;
  logins.take("git+https://me:x@h/a", "");
  CHECK_REFUSED(logins.take("git+https://me:y@h/a", ""), Usage, "one repository has two logins");
  for (int i = 0; i < 99; ++i) logins.take("git+https://me:x@h/b" + std::to_string(i), "");
  CHECK_REFUSED(logins.take("git+https://me:x@h/c", ""), Usage, "more than 100");
}

TEST_CASE("a login may name a variable, whose value no file holds") {
  ::setenv("SEALIFT_TEST_TOKEN", "a%2Fb", 1);
  GitLogins logins;
  CHECK(logins.take("a @ git+https://me:${SEALIFT_TEST_TOKEN}@h/a", "") == "a @ git+https://h/a");
  CHECK(git_told(logins, "h", "a") == "username=me\npassword=a/b\n");
  ::setenv("SEALIFT_TEST_TOKEN", "x@y", 1);
  CHECK_REFUSED(logins.take("a @ git+https://me:${SEALIFT_TEST_TOKEN}@h/a", ""), Usage, "is not valid");
  ::unsetenv("SEALIFT_TEST_TOKEN");
}

TEST_CASE("git gets a login for its own server alone, and of several on one server each for its own repository") {
  GitLogins logins;
  logins.take("git+https://me%40work:s%2Ft@one/a.git@main git+https://a:1@two/org/a git+https://b:2@two/org/b", "");
  logins.take("git+https://name@three/x", "");
  CHECK(git_told(logins, "one", "other.git") == "username=me@work\npassword=s/t\n");  // a submodule
  CHECK(git_told(logins, "two", "org/a/") == "username=a\npassword=1\n");
  CHECK(git_told(logins, "two", "org/b/") == "username=b\npassword=2\n");
  CHECK(git_told(logins, "two", "org/c/") == "nothing");
  CHECK(git_told(logins, "one.evil", "a.git") == "nothing");
  CHECK(git_told(logins, "one:8443", "a.git") == "nothing");
  CHECK(git_told(logins, "three", "x") == "nothing");  // no password: the user's helpers are asked for it
  for (const auto& [name, value] : logins.variables())
    if (name.starts_with("GIT_CONFIG_VALUE")) CHECK(value.find("s/t") == std::string::npos);
}

TEST_CASE("requirements files are copied without logins, with those that they include, and else taken as they are") {
  const TempDir dir, scratch;
  write_file(dir / "plain.txt", "demo==1.0\n-r more/other.txt\n");
  write_file(dir / "more/other.txt", "other\n");
  GitLogins logins;
  CHECK(file_without_logins(dir / "plain.txt", scratch.path(), logins) == dir / "plain.txt");
  write_file(dir / "more/other.txt",
             "-f ../wheels\n-c deep.txt\n./folder\na \\\n  @ git+https://me:secret@h/a # why\n");
  write_file(dir / "more/deep.txt", "b @ git+https://you:secret@other/b\n");
  const TempDir again;
  const auto copy = file_without_logins(dir / "plain.txt", again.path(), logins);
  CHECK(copy != dir / "plain.txt");
  std::string all;
  for (const auto& file : std::filesystem::directory_iterator(again.path())) all += read_file(file.path());
  CHECK(all.find("secret") == std::string::npos);
  for (const std::string line : {"demo==1.0\n", "a @ git+https://h/a\n", "b @ git+https://other/b\n", "./folder\n"})
    CHECK_MESSAGE(all.find(line) != std::string::npos, line);
  CHECK(all.find("-f " + (dir / "wheels").string() + "\n") != std::string::npos);
  CHECK(all.find("-r " + again.path().string()) != std::string::npos);
  CHECK(git_told(logins, "other", "b") == "username=you\npassword=secret\n");
  write_file(dir / "round.txt", "-r round.txt\n");
  CHECK_REFUSED(file_without_logins(dir / "round.txt", TempDir().path(), logins), Usage, "without end");
}

TEST_CASE("a project with a repository's login is refused, since uv reads it where it lies") {
  const TempDir dir;
  const auto file = dir / "pyproject.toml";
  for (const char* bad : {"dependencies = [\"a @ git+https://me:secret@h/a\"]\n",
                          "a = { git = \"https://me:secret@h/a\", tag = \"1\" }\n", "\"git\"='http://secret@h/a'\n",
                          "a = { git = \"https://me:x@secret@h/a\" }\n"}) {
    CAPTURE(bad);
    write_file(file, bad);
    const auto error = sealift::test::refusal([&] { refuse_logins_in(file); });
    CHECK(error.code() == sealift::bundle::ErrorCode::Usage);
    CHECK_FALSE(sealift::test::mentions(error, "secret"));
  }
  write_file(file,
             "dependencies = [\"a @ git+https://h/a@v1\"]\nb = { git = \"https://github.com/b\" }\n"
             "[[tool.uv.index]]\nurl = \"https://me:x@index/simple\"\n");
  refuse_logins_in(file);
}

TEST_CASE("messages of uv come without logins") {
  CHECK(without_logins("error: `git fetch https://me:x@h/a` failed\n  https://h/b@v1 HTTP://t@h ssh://git@h/c") ==
        "error: `git fetch https://h/a` failed\n  https://h/b@v1 HTTP://h ssh://git@h/c");
}
