// SPDX-License-Identifier: Apache-2.0
// The command line that the tools share: what it accepts, where it prints, and how it ends.
#include "bundle/host/command_line.hpp"

#include <doctest/doctest.h>

#include <iostream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "bundle/core/foreign_text.hpp"

using namespace sealift::bundle;

namespace {

struct Ended {
  int exit_code;
  std::string out, err;
};

// A program with a verb `pack BUNDLE --jobs N --onto A --onto B --json`, and `trust add`.
struct Fixture {
  std::string bundle;
  unsigned jobs = 4;
  std::vector<std::filesystem::path> onto;
  bool json = false, added = false;
  std::function<int()> act = [] { return 0; };

  Ended run(std::vector<std::string> words) {
    Program program("sealift-test", "Tests.", "1.2.3");
    const Verb pack = program.verb("pack", "packs");
    pack.option("BUNDLE", bundle, "what").required();
    pack.option("--jobs", jobs, "how many").between(1, 64);
    pack.option("--onto", onto, "on what").repeated();
    pack.json(json);
    pack.action([this] { return act(); });
    const Verb trust = program.verb("trust", "trusts");
    trust.verb("add", "adds").action([this] {
      added = true;
      return 0;
    });
    words.insert(words.begin(), "sealift-test");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    std::ostringstream out, err;
    std::streambuf* const old_out = std::cout.rdbuf(out.rdbuf());
    std::streambuf* const old_err = std::cerr.rdbuf(err.rdbuf());
    const int exit_code = program.run(static_cast<int>(argv.size()), argv.data());
    std::cout.rdbuf(old_out);
    std::cerr.rdbuf(old_err);
    return {exit_code, out.str(), err.str()};
  }
};

const Error kBad(ErrorCode::Digest, {.what = "bytes differ", .where = "vol001", .got = "\xff"});

}  // namespace

TEST_CASE("a verb gets what was written on the command line, and its result is the exit code") {
  Fixture fixture;
  fixture.act = [&] {
    print(fixture.json, {{"bundle", fixture.bundle}}, "text\n");
    return 7;
  };
  const Ended ended = fixture.run({"pack", "demo", "--jobs", "9", "--onto", "a", "--onto", "b", "--json"});
  CHECK(ended.exit_code == 7);
  CHECK(ended.out == "{\"bundle\":\"demo\"}\n");
  CHECK(ended.err.empty());
  CHECK(fixture.jobs == 9);
  CHECK(fixture.onto == std::vector<std::filesystem::path>{"a", "b"});
  CHECK(fixture.run({"trust", "add"}).exit_code == 0);
  CHECK(fixture.added);
}

TEST_CASE("arguments that make no sense end with 2, help and version with 0") {
  Fixture fixture;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {}, {"fetch"}, {"pack"}, {"pack", "demo", "--jobs", "0"}, {"pack", "demo", "--bogus"}, {"trust"}}) {
    const Ended ended = fixture.run(words);
    CHECK(ended.exit_code == 2);
    CHECK(ended.out.empty());
    CHECK_FALSE(ended.err.empty());
  }
  CHECK(fixture.run({"--version"}).out == "sealift-test 1.2.3\n");
  const Ended help = fixture.run({"pack", "--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.out.find("--jobs UINT") != std::string::npos);
}

TEST_CASE("what the standard library says of a file has the code, the path and the remedy of all others") {
  Fixture fixture;
  fixture.act = []() -> int {
    throw std::filesystem::filesystem_error("cannot copy", "/full/disk",
                                            std::make_error_code(std::errc::no_space_on_device));
  };
  const Ended full = fixture.run({"pack", "demo"});
  CHECK(full.exit_code == 9);
  CHECK(full.err.find("/full/disk") != std::string::npos);
  CHECK(full.err.find("make room there") != std::string::npos);
}

TEST_CASE(
    "a thread that cannot be made is told with what refuses it: a limit, or an older container runtime's filter") {
  Fixture fixture;
  const auto ended = [&](std::errc why) {
    fixture.act = [why]() -> int { throw std::system_error(std::make_error_code(why), "a thread"); };
    return fixture.run({"pack", "b"});
  };
  CHECK(ended(std::errc::resource_unavailable_try_again).err.find("ulimit -u") != std::string::npos);
  const Ended refused = ended(std::errc::operation_not_permitted);
  CHECK(refused.exit_code == 3);
  CHECK(refused.err.find("seccomp=unconfined") != std::string::npos);
}

TEST_CASE("an error is told on stderr and gives the exit code; with --json it is an object on stdout, too") {
  Fixture fixture;
  fixture.act = []() -> int { throw kBad; };
  const Ended text = fixture.run({"pack", "demo"});
  CHECK(text.exit_code == 5);
  CHECK(text.out.empty());
  CHECK(text.err == "error[digest]: bytes differ\n  where:    vol001\n  got:      \\xff\n");
  const Ended json = fixture.run({"pack", "demo", "--json"});
  CHECK(json.exit_code == 5);
  CHECK(json.out ==
        "{\"error\":{\"code\":\"digest\",\"exit\":5,\"got\":\"\xef\xbf\xbd\",\"what\":\"bytes differ\","
        "\"where\":\"vol001\"}}\n");
  fixture.act = []() -> int { throw std::runtime_error("disk"); };
  CHECK(fixture.run({"pack", "demo"}).exit_code == 3);
}

TEST_CASE("a misspelt verb is named with the verbs that there are and the one that was meant, below another verb too") {
  Fixture fixture;
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows = {
      {{"pakc", "demo"}, "\n  got:      pakc\n  next:     did you mean: sealift-test pack\n"},
      {{"--json", "trsut"}, "did you mean: sealift-test trust\n"},
      {{"trust", "ad"}, "\n  expected: add\n  got:      ad\n  next:     did you mean: sealift-test trust add\n"},
      {{"fetch"}, "\n  expected: pack, trust\n  got:      fetch\n  next:     see: sealift-test --help\n"},
      {{"trust", "forget", "x"}, "see: sealift-test trust --help\n"}};
  for (const auto& [words, end] : rows) {
    const Ended ended = fixture.run(words);
    CHECK(ended.exit_code == 2);
    CHECK(ended.err.starts_with("error[usage]: there is no such verb\n"));
    CHECK_MESSAGE(ended.err.ends_with(end), ended.err);
  }
  const Ended json = fixture.run({"pakc", "--json"});
  CHECK(json.out.find("\"next\":\"did you mean: sealift-test pack\"") != std::string::npos);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{}, {"pack"}, {"trust"}})
    CHECK(fixture.run(words).err.find("no such verb") == std::string::npos);  // something else is wrong
}

TEST_CASE("a misspelt option is named with the one of its verb that was meant, before another fault is") {
  Fixture fixture;
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows = {
      {{"pack", "demo", "--jbos", "3"}, "\n  got:      --jbos\n  next:     did you mean: sealift-test pack --jobs\n"},
      {{"pack", "demo", "--jbos=3"}, "\n  got:      --jbos\n  next:     did you mean: sealift-test pack --jobs\n"},
      {{"pack", "--otno", "x"}, "did you mean: sealift-test pack --onto\n"},  // BUNDLE is missing as well
      {{"pack", "demo", "--version"}, "see: sealift-test pack --help\n"},     // the program's, and CLI11 wants it first
      {{"trust", "add", "--jobs", "3"}, "\n  got:      --jobs\n  next:     see: sealift-test trust add --help\n"}};
  for (const auto& [words, end] : rows) {
    const Ended ended = fixture.run(words);
    CHECK(ended.exit_code == 2);
    CHECK_MESSAGE(ended.err.starts_with("error[usage]: there is no such option\n"), ended.err);
    CHECK_MESSAGE(ended.err.ends_with(end), ended.err);
  }
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"pack", "demo", "--jobs"},
                                                                                     {"pack", "demo", "--jobs", "0"},
                                                                                     {"pack", "--", "a", "--b"},
                                                                                     {"pack", "demo", "x"}})
    CHECK(fixture.run(words).err.find("no such option") == std::string::npos);  // something else is wrong
}

TEST_CASE("what a bundle or a job brings into a message moves no cursor, turns no text round and forges no line") {
  const std::string hostile =
      "a\x1b[2J\x7f\r\xc2\x9b"
      "31m\xe2\x80\xae"
      "b\xff\xe2\x81\xa6\t\xe4\xb8\xad\n";
  const std::string shown = "a\\u001b[2J\\u007f\\u000d\\u009b31m\\u202eb\\xff\\u2066\t\xe4\xb8\xad\n";
  CHECK(terminal_text(hostile) == shown);
  CHECK(terminal_text("") == "");
  CHECK(terminal_text("\xe4\xb8") == "\\xe4\\xb8");  // cut short
  Fixture fixture;
  fixture.act = [&] {
    print_warnings({hostile});
    print(false, {}, hostile);
    return 0;
  };
  const Ended text = fixture.run({"pack", "demo"});
  CHECK(text.out == shown);
  CHECK(text.err == "warning: " + shown + "\n");
  fixture.act = [&] {
    std::cout << "a\xe2"
              << "\x80\xae" << '\x1b' << "\xe4\xb8\xad" << 7 << "\xe4";
    std::cerr << "x\xc2\x9b" << '\n';
    return 0;
  };
  const Ended by_stream = fixture.run({"pack", "demo"});
  CHECK(by_stream.out ==
        "a\\u202e\\u001b\xe4\xb8\xad"
        "7\\xe4");
  CHECK(by_stream.err == "x\\u009b\n");
  const std::string name =
      "a\x1b\xc2\x9b"
      "b\xe2\x80\xae\x7f\xe4\xb8\xad";
  fixture.act = [&] {
    print(true, {{"name", name}}, "");
    return 0;
  };
  const Ended json = fixture.run({"pack", "demo", "--json"});
  CHECK(json.out == "{\"name\":\"a\\u001b\\u009bb\\u202e\\u007f\xe4\xb8\xad\"}\n");
  CHECK(Json::parse(json.out)["name"] == name);
  fixture.act = [&]() -> int { throw Error(ErrorCode::Format, {.what = "bad", .got = name}); };
  const Ended refused = fixture.run({"pack", "demo", "--json"});
  CHECK(refused.err.find("a\\u001b\\u009bb\\u202e\\u007f") != std::string::npos);
  CHECK(Json::parse(refused.out)["error"]["got"] == name);
}
