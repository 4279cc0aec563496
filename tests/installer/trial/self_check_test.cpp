// SPDX-License-Identifier: Apache-2.0
// The self-test decides whether a generation is switched to; the interpreters here are shell scripts.
#include "installer/trial/self_check.hpp"

#include "installer/generations/generation.hpp"
#include "installer/print/status_report.hpp"
#include "tests/installer/site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

TinyBundle with_interpreter(const std::string& script, std::uint64_t version = 1) {
  TinyBundle tiny{.version = version, .imports = {"demo", "demo.part"}};
  tiny.items = {wheel_item({}), file_item("files/python", "#!/bin/sh\n" + script, "bin/python3", true)};
  return tiny;
}

}  // namespace

TEST_CASE("the interpreter of the new generation imports the named modules, isolated and with a clean environment") {
  const Site site;
  ::setenv("LD_LIBRARY_PATH", "/somewhere", 1);
  ::setenv("PYTHONPATH", "/somewhere", 1);
  const std::string script =
      "test \"$1 $2 $3 $4\" = '-I -B -c import demo, demo.part' || { echo \"got $*\" >&2; exit 9; }\n"
      "test -z \"$LD_LIBRARY_PATH$PYTHONPATH\" || exit 8\n"
      "test -w \"$HOME\" || exit 7\n"
      "echo noise\n"
      "case \"$0\" in */staging/*/generation/bin/python3) ;; *) exit 6 ;; esac\n";
  const Applied applied = site.apply(site.make(with_interpreter(script)));
  ::unsetenv("LD_LIBRARY_PATH");
  ::unsetenv("PYTHONPATH");
  CHECK(applied.record->self_check.imports == std::vector<std::string>{"demo", "demo.part"});
}

TEST_CASE("a generation that fails its self-test is not named, and the old one stays current") {
  const Site site;
  site.apply(site.make(with_interpreter("exit 0\n")));
  const MadeBundle bad =
      site.make(with_interpreter("echo 'ImportError: libfoo.so.1: cannot open' >&2\nexit 1\n", 2), "bundle2");
  const bundle::Error error = refusal([&] { site.apply(bad); });
  CHECK(error.code() == bundle::ErrorCode::SelfTest);
  CHECK(mentions(error, "ImportError: libfoo.so.1"));
  CHECK(mentions(error, "exit code 1"));
  CHECK(fs::read_symlink(site.current()) == "generations/0001");
  CHECK(generation_numbers(site.prefix()) == std::vector<unsigned>{1});
  CHECK((!fs::exists(site.prefix().staging()) || fs::is_empty(site.prefix().staging())));
}

TEST_CASE("what failed lies aside with its reason, which status tells, until something newer is known") {
  const Site site;
  site.apply(site.make(with_interpreter("exit 0\n")));
  CHECK(!status_of(site.prefix()).failed);
  const auto fail = [&](const std::string& word, std::uint64_t version) {
    const MadeBundle bad = site.make(with_interpreter("printf '" + word + " \\377\\n' >&2\nexit 1\n", version),
                                     "bundle" + std::to_string(version));
    CHECK_REFUSED(site.apply(bad), SelfTest, word);
    const std::optional<FailedGeneration> failed = status_of(site.prefix()).failed;
    REQUIRE(failed);
    CHECK(failed->number == 2);
    CHECK(failed->version == version);
    CHECK(failed->identity == bundle::sha256(bundle::as_bytes(bundle::write_manifest(bad.manifest))));
    CHECK(failed->got == "exit code 1\n" + word + " ?");  // invalid UTF-8 does not spoil the record
    CHECK(read_file(site.prefix().failed() / "generation/bin/python3").find(word) != std::string::npos);
  };
  fail("first", 2);
  fail("second", 3);
  CHECK(text_of(status_of(site.prefix())).find("failed its self-test") != std::string::npos);
  CHECK(json_of(status_of(site.prefix()))["failed"]["version"] == 3);
  CHECK(site.apply(site.make(with_interpreter("exit 0\n", 4), "bundle4")).generation == 2);
  CHECK(!status_of(site.prefix()).failed);
  CHECK(!fs::exists(site.prefix().failed()));
}

TEST_CASE("a record of an older version, without steps, is still read") {
  const bundle::Json old = {{"imports", {"demo"}}, {"milliseconds", 5u}};
  CHECK(self_check_from(bundle::JsonObject(old, "old")).steps.empty());
  const SelfCheck test{.imports = {"demo"}, .milliseconds = 7, .steps = {{"native files", true, "3 of 3"}}};
  const bundle::Json json = to_json(test);
  CHECK(self_check_from(bundle::JsonObject(json, "new")).steps == test.steps);
}

TEST_CASE("an interpreter that is missing, crashes or never ends fails the self-test") {
  const TempDir dir;
  bundle::Environment environment;
  environment.imports = {"demo"};
  const auto test = [&](const std::string& script) {
    if (!script.empty()) {
      write_file(dir / "bin/python3", "#!/bin/sh\n" + script);
      fs::permissions(dir / "bin/python3", fs::perms::owner_all);
    }
    return self_check(environment, {}, dir.path(), dir.path(), {.patience = std::chrono::seconds(1)});
  };
  CHECK_REFUSED(test(""), SelfTest, "No such file");
  CHECK_REFUSED(test("kill -SEGV $$\n"), SelfTest, "signal 11");
  CHECK_REFUSED(test("while :; do :; done\n"), SelfTest, "no end after 1 seconds");
  CHECK_REFUSED(test("i=0; while [ $i -lt 3000 ]; do echo \"line $i\" >&2; i=$((i+1)); done; exit 2\n"), SelfTest,
                "line 2999");
  CHECK(test("exit 0\n").imports.size() == 1);
}

TEST_CASE("what a wheel brings under a program's name is not run by the self-test, nor recorded as passed") {
  const TempDir dir;
  bundle::Environment environment;
  const auto wheel = std::make_shared<Place::Origin>(
      Place::Origin{.owner = "wheels/evil-1.0-py3-none-any.whl", .item = "", .wheel = true});
  const auto entry = std::make_shared<Place::Origin>(Place::Origin{.owner = "programs/bin/sealift-train", .item = ""});
  Layout layout;
  for (const char* name : {"bin/sealift-train", "bin/sealift-verify"}) {
    write_file(dir / name, "#!/bin/sh\ntouch " + (dir / "was-run").string() + "\n");
    fs::permissions(dir / name, fs::perms::owner_all);
    layout[name] = {.type = Place::Type::File, .origin = wheel};
  }
  const auto test = [&] {
    return self_check(environment, layout, dir.path(), dir.path(), {.depth = SelfCheckOptions::Depth::Training});
  };
  const SelfCheck of_wheel = test();
  for (const SelfCheck::Step& step : of_wheel.steps) CHECK_FALSE(step.passed);
  CHECK_FALSE(fs::exists(dir / "was-run"));
  layout["bin/sealift-train"].origin = entry;
  const SelfCheck of_entry = test();
  CHECK(fs::exists(dir / "was-run"));
  CHECK(std::any_of(of_entry.steps.begin(), of_entry.steps.end(),
                    [](const SelfCheck::Step& step) { return step.name == "training" && step.passed; }));
  environment.imports = {"demo"};
  layout["bin/python3"] = {.type = Place::Type::File, .origin = wheel};
  CHECK_REFUSED(test(), SelfTest, "evil-1.0");
}

TEST_CASE("the self-test's parts run beside each other, and of several that fail the first one is told") {
  const TempDir dir;
  bundle::Environment environment;
  environment.imports = {"demo"};
  const auto entry = std::make_shared<Place::Origin>(Place::Origin{.owner = "wheels/torch.whl", .item = ""});
  Layout layout;
  for (const char* name : {"/torch/__init__.py", "/torch/distributed/__init__.py"})
    layout[environment.site_packages.text() + name] = {.type = Place::Type::File, .origin = entry};
  // The imports end only once the all-reduce has begun.
  const auto test = [&](const std::string& end, unsigned threads) {
    fs::remove(dir / "met");
    for (const char* part : {"part0", "part1", "part2"}) fs::remove_all(dir / part);
    write_file(dir / "bin/python3",
               "#!/bin/sh\ncase \"$4\" in\n'import demo') until test -e \"$HOME/../met\"; do :; done; "
               "echo first >&2;;\n*) touch \"$HOME/../met\"; echo second >&2;;\nesac\n" +
                   end);
    fs::permissions(dir / "bin/python3", fs::perms::owner_all);
    return self_check(environment, layout, dir.path(), dir.path(),
                      {.patience = std::chrono::seconds(threads == 1 ? 1 : 20), .threads = threads});
  };
  const SelfCheck check = test("exit 0\n", 3);
  REQUIRE(check.steps.size() == 2);
  CHECK(check.steps[1].passed);
  REQUIRE(check.took.size() == 3);
  CHECK(check.took[0].part == "imports");
  CHECK(check.took[2].part == "all-reduce");
  CHECK_REFUSED(test("exit 1\n", 3), SelfTest, "first");
  CHECK_REFUSED(test("exit 0\n", 1), SelfTest, "no end after 1 seconds");  // one after the other, as on one core
}

TEST_CASE("without modules to import no interpreter is run or needed") {
  const Site site;
  TinyBundle tiny;
  tiny.interpreter = "bin/not-there";
  CHECK(site.apply(site.make(tiny)).record->self_check.imports.empty());
}
