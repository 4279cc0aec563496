// SPDX-License-Identifier: Apache-2.0
// The command line that the tools share: what it accepts, where it prints, and how it ends.
#include "bundle/host/command_line.hpp"

#include <doctest/doctest.h>

#include <iostream>
#include <sstream>
#include <stdexcept>

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

TEST_CASE("an error is told on stderr and gives the exit code; with --json it is an object on stdout, too") {
  Fixture fixture;
  fixture.act = []() -> int { throw kBad; };
  const Ended text = fixture.run({"pack", "demo"});
  CHECK(text.exit_code == 5);
  CHECK(text.out.empty());
  CHECK(text.err == "error[digest]: bytes differ\n  where:    vol001\n  got:      \xff\n");
  const Ended json = fixture.run({"pack", "demo", "--json"});
  CHECK(json.exit_code == 5);
  CHECK(json.out ==
        "{\"error\":{\"code\":\"digest\",\"exit\":5,\"got\":\"\xef\xbf\xbd\",\"what\":\"bytes differ\","
        "\"where\":\"vol001\"}}\n");
  fixture.act = []() -> int { throw std::runtime_error("disk"); };
  CHECK(fixture.run({"pack", "demo"}).exit_code == 3);
}
