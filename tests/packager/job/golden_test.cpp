// SPDX-License-Identifier: Apache-2.0
// [[golden]]: a recorded result becomes a carried file; one that a site would refuse, or that read other files than are
// carried, is refused here.
#include <doctest/doctest.h>

#include "packager/job/job.hpp"
#include "packager/models/golden_runs.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using test::TempDir;

namespace {

const std::string kGoldenDigest(64, 'a');

std::string golden_result(const std::string& losses = "[\"4\", \"3.5\"]", const std::string& more = {}) {
  return R"({"format": "sealift.golden", "version": 1, "name": "tiny", "verb": "sft", "settings": {"model": "models/tiny"},)"
         R"("rows": 4, "steps": 2, "inputs": {"models/tiny/config.json": ")" +
         kGoldenDigest + R"("}, "losses": )" + losses + R"(, "norms": ["1", "0.5"], "weights": ")" + kGoldenDigest +
         R"(", "device": "a processor", "arch": "x86_64", "torch": "2.11.0", "threads": 1, "tolerances": {"fp32": "1e-5"})" +
         more + "}";
}

struct GoldenDesk {
  TempDir dir;
  Job read(const std::string& result,
           const std::string& tables = "[[golden]]\nname = \"tiny\"\nresult = \"g.json\"\n") {
    test::write_file(dir / "g.json", result);
    test::write_file(dir / "job.toml",
                     "name = \"demo\"\nversion = 1\n[target]\narch = \"x86_64\"\nglibc = \"2.36\"\n[python]\nversion = "
                     "\"3.11\"\nrequirements = [\"demo\"]\n" +
                         tables);
    return read_job(dir / "job.toml");
  }
};

Lock lock_carrying(const std::string& path, const std::string& digest) {
  Lock lock;
  lock.models.push_back({.spec = {.into = "models/tiny"}, .commit = {}, .files = {}});
  lock.models[0].files.push_back({.path = path, .size = 1, .sha256 = *bundle::Digest::from_hex(digest)});
  return lock;
}

}  // namespace

TEST_CASE("a golden run's result becomes a carried file that is not started") {
  GoldenDesk desk;
  const Job job = desk.read(golden_result());
  REQUIRE(job.goldens.size() == 1);
  CHECK(job.goldens[0].inputs.size() == 1);
  REQUIRE(job.programs.size() == 1);
  CHECK(job.programs[0].into == "share/sealift/golden/tiny.json");
  CHECK_FALSE(job.programs[0].executable);
  CHECK(job.programs[0].source == desk.dir / "g.json");
}

TEST_CASE("a result that a site would refuse is refused with the job: numbers, steps, names, keys") {
  GoldenDesk desk;
  CHECK_REFUSED(desk.read(golden_result("[\"4\", \"nan\"]")), Usage, "not finite");
  CHECK_REFUSED(desk.read(golden_result("[\"4\", \"\"]")), Usage, "not finite");
  CHECK_REFUSED(desk.read(golden_result("[\"4\"]")), Usage, "not one of losses for each step");
  CHECK_REFUSED(desk.read(golden_result("[\"4\", \"3\"]", ", \"waived\": true")), Format, "waived");
  CHECK_REFUSED(desk.read("{"), Format, "g.json");
  auto other = golden_result();
  other.replace(other.find("\"tiny\""), 6, "\"else\"");
  CHECK_REFUSED(desk.read(other), Usage, "another name than its table");
  auto escape = golden_result();
  escape.replace(escape.find("models/tiny/config.json"), 23, "../../etc/passwd");
  CHECK_THROWS_AS(desk.read(escape), bundle::Error);
  const std::string one = "[[golden]]\nname = \"tiny\"\nresult = \"g.json\"\n";
  CHECK_REFUSED(desk.read(golden_result(), one + one), Usage, "two golden runs have the same name");
  CHECK_REFUSED(desk.read(golden_result(), "[[golden]]\nname = \"../x\"\nresult = \"g.json\"\n"), Usage, "name");
  CHECK_REFUSED(desk.read(golden_result(), "[[golden]]\nname = \"tiny\"\nresult = \"none.json\"\n"), Usage,
                "is not there");
}

TEST_CASE("what a golden run read must be carried, byte for byte") {
  GoldenDesk desk;
  const auto goldens = desk.read(golden_result()).goldens;
  require_inputs_of_goldens(goldens, lock_carrying("config.json", kGoldenDigest));
  CHECK_REFUSED(require_inputs_of_goldens(goldens, lock_carrying("config.json", std::string(64, 'b'))), Usage,
                "models/tiny/config.json (other bytes)");
  CHECK_REFUSED(require_inputs_of_goldens(goldens, lock_carrying("other.json", kGoldenDigest)), Usage,
                "models/tiny/config.json (not carried)");
}

namespace {

// Takes the place of sealift-verify: says what it was given, digests what lies there, and writes a result.
constexpr const char* kFakeVerifier = R"(#!/bin/sh
set -eu
[ "$1 $3 $5 $7" = "golden --prefix --out --device" ] || { echo "unexpected: $*" >&2; exit 2; }
[ -e "$4/bin/sealift-train" ] || { echo "no trainer in $4" >&2; exit 2; }
digest=$(sha256sum <"$4/models/tiny/config.json" | cut -c1-64)
sed "s/DIGEST/$digest/" "$2" >"$6"
echo "ran on $8 with ${LD_LIBRARY_PATH:-nothing}"
)";

struct RunDesk : GoldenDesk {
  Cache cache{dir / "cache"};
  bundle::Progress progress{nullptr};
  std::vector<LockedModel> models;

  RunDesk() {
    test::write_file(dir / "model/config.json", "{}");
    test::write_file(dir / "verify/sealift-verify", kFakeVerifier);
    test::write_file(dir / "verify/sealift-train", "");
    std::filesystem::permissions(dir / "verify/sealift-verify", std::filesystem::perms::owner_all);
    models = lock_carrying("config.json", "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a").models;
    models[0].spec.folder = dir / "model";
    auto result = golden_result();
    result.replace(result.find(kGoldenDigest), 64, "DIGEST");
    test::write_file(dir / "tiny.toml", result);  // the fake only copies it
  }
  Job job(const std::string& more = {}) {
    return read(golden_result(),
                "[[golden]]\nname = \"tiny\"\njob = \"tiny.toml\"\n"
                "program = \"verify/sealift-verify\"\n" +
                    more);
  }
};

}  // namespace

TEST_CASE("a golden run that names its job is run by lock, over the files that are carried, and its result carried") {
  RunDesk desk;
  Job job = desk.job();
  REQUIRE(job.goldens.size() == 1);
  CHECK(job.programs.empty());  // there is no result yet
  const auto results = run_goldens(job, desk.models, desk.cache, desk.dir / "out", desk.dir / "scratch", desk.progress);
  REQUIRE(results.size() == 1);
  CHECK(results[0].into == "share/sealift/golden/tiny.json");
  CHECK(results[0].source == desk.dir / "out/tiny.golden.json");
  Lock lock;
  lock.models = desk.models;
  require_inputs_of_goldens(job.goldens, lock);
  CHECK(job.goldens[0].inputs.size() == 1);
}

TEST_CASE("a golden run that cannot be run, or has another result, stops the lock with what was said") {
  RunDesk desk;
  const auto run = [&](Job job) {
    std::filesystem::remove_all(desk.dir / "scratch");
    return run_goldens(job, desk.models, desk.cache, desk.dir / "out", desk.dir / "scratch", desk.progress);
  };
  auto renamed = desk.job();
  renamed.goldens[0].name = "other";
  CHECK_REFUSED(run(renamed), Usage, "another name than its table");
  auto gone = desk.job();
  gone.goldens[0].job->program = desk.dir / "none";
  CHECK_THROWS_AS(run(gone), bundle::Error);
  std::filesystem::remove(desk.dir / "verify/sealift-train");
  CHECK_REFUSED(run(desk.job()), Io, "no trainer");
  std::filesystem::remove(desk.dir / "model/config.json");
  CHECK_REFUSED(run(desk.job()), Missing, "models/tiny/config.json");
  CHECK_REFUSED(desk.job("device = \"tpu\"\n"), Usage, "another device");
  CHECK_REFUSED(desk.job("result = \"g.json\"\n"), Usage, "result");
  std::filesystem::remove(desk.dir / "tiny.toml");
  CHECK_REFUSED(desk.job(), Usage, "the job of a golden run is not there");
}
