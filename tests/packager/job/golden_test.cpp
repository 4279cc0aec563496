// SPDX-License-Identifier: Apache-2.0
// [[golden]]: a recorded result becomes a carried file; one that a site would refuse, or that read other files than are
// carried, is refused here.
#include <doctest/doctest.h>

#include <cstdlib>

#include "packager/job/job.hpp"
#include "packager/models/golden_runs.hpp"
#include "tests/support/left_out.hpp"
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

TEST_CASE("a result of several ranks says how many and by which method, and that they divide a step") {
  GoldenDesk desk;
  const auto read = [&](const std::string& keys) { return desk.read(golden_result("[\"4\", \"3\"]", keys)); };
  CHECK(read(R"(, "ranks": 2, "method": "fsdp")").goldens.size() == 1);
  CHECK(read(R"(, "ranks": 4, "method": "ddp")").goldens.size() == 1);
  CHECK_REFUSED(read(R"(, "ranks": 1, "method": "ddp")"), Usage, "ranks is there for several");
  CHECK_REFUSED(read(R"(, "ranks": 65, "method": "ddp")"), Format, "ranks");
  CHECK_REFUSED(read(R"(, "ranks": 3, "method": "ddp")"), Usage, "do not divide the rows");
  CHECK_REFUSED(read(R"(, "ranks": 2, "method": "none")"), Usage, "another method");
  CHECK_REFUSED(read(R"(, "ranks": 2)"), Format, "method");
  CHECK_REFUSED(read(R"(, "method": "ddp")"), Format, "ranks");
}

namespace {

// Takes the place of sealift-verify: says what it was given, digests what lies there, and writes a result.
constexpr const char* kFakeVerifier = R"(#!/bin/sh
set -eu
[ "$1 $3 $5 $7" = "golden --prefix --out --device" ] || { echo "unexpected: $*" >&2; exit 2; }
digest=$(sha256sum <"$4/models/tiny/config.json" | cut -c1-64)
[ -e "$4/bin/sealift-train" ] && touch "$HOME/x" "$TMPDIR/x" || { echo "something is not there" >&2; exit 2; }
MORE
sed "s/DIGEST/$digest/" "$2" >"$6"
echo "ran on $8"
)";

struct RunDesk : GoldenDesk {
  Cache cache{dir / "cache"};
  bundle::Progress progress{nullptr};
  std::vector<LockedModel> models;

  RunDesk() {
    test::write_file(dir / "model/config.json", "{}");
    test::write_file(dir / "verify/sealift-train", "");
    verifier("");
    models = lock_carrying("config.json", "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a").models;
    models[0].spec.folder = dir / "model";
    auto result = golden_result();
    result.replace(result.find(kGoldenDigest), 64, "DIGEST");
    test::write_file(dir / "tiny.toml", result);  // the fake only copies it
  }
  void verifier(const std::string& more) const {
    std::string text = kFakeVerifier;
    test::write_file(dir / "verify/sealift-verify", text.replace(text.find("MORE"), 4, more));
    std::filesystem::permissions(dir / "verify/sealift-verify", std::filesystem::perms::owner_all);
  }
  Job job(const std::string& more = {}) {
    return read(golden_result(),
                "[[golden]]\nname = \"tiny\"\njob = \"tiny.toml\"\n"
                "program = \"verify/sealift-verify\"\n" +
                    more);
  }
  std::vector<JobProgram> run(Job& job, Isolation isolation = Isolation::Sandbox) {
    std::filesystem::remove_all(dir / "scratch");
    return run_goldens(job, models, cache, dir / "out", dir / "scratch", isolation, progress);
  }
};

bool no_sandbox_for_goldens() {
  try {
    require_sandbox("");
    return false;
  } catch (const bundle::Error& error) {
    sealift::test::left_out(error.what());
    return true;
  }
}

}  // namespace

TEST_CASE("a golden run is not recorded on another architecture than the target's") {
  RunDesk desk;
  Job job = desk.job();
  job.target.arch = "aarch64";
  CHECK_REFUSED(desk.run(job, Isolation::None), Platform, "record it there");
}

TEST_CASE("a golden run that names its job is run by lock, over the files that are carried, and its result carried") {
  if (no_sandbox_for_goldens()) return;
  RunDesk desk;
  for (const Isolation isolation : {Isolation::Sandbox, Isolation::None}) {  // the second replaces the first's result
    Job job = desk.job();
    REQUIRE(job.goldens.size() == 1);
    CHECK(job.programs.empty());  // there is no result yet
    const auto results = desk.run(job, isolation);
    REQUIRE(results.size() == 1);
    CHECK(results[0].into == "share/sealift/golden/tiny.json");
    CHECK(results[0].source == desk.dir / "out/tiny.golden.json");
    Lock lock;
    lock.models = desk.models;
    require_inputs_of_goldens(job.goldens, lock);
    CHECK(job.goldens[0].inputs.size() == 1);
  }
}

TEST_CASE("the job of a golden run reaches no network, no other file and no variable of the packer's") {
  if (no_sandbox_for_goldens()) return;
  RunDesk desk;
  test::write_file(desk.dir / "secret", "a key");
  test::write_file(desk.dir / "verify/secret", "a key");
  const std::string folder = desk.dir.path().string();
  desk.verifier(
      "others=$(tail -n +3 /proc/net/dev | grep -v '^ *lo:' || true)\n"
      "for file in " +
      folder + "/secret " + folder +
      "/verify/secret /etc/shadow; do\n"
      "  [ ! -e $file ] || { echo \"$file is in reach\" >&2; exit 3; }\n"
      "done\n"
      "[ -z \"$others${HF_TOKEN:-}\" ] || { echo \"$others $HF_TOKEN\" >&2; exit 3; }\n"
      "if echo x 2>/dev/null >>\"$4/models/tiny/config.json\"; then echo 'a model is written' >&2; exit 3; fi\n"
      "[ -d /sys/devices/system/cpu ] || { echo 'the processor is unknown' >&2; exit 3; }");
  ::setenv("HF_TOKEN", "secret", 1);
  Job job = desk.job();
  CHECK(desk.run(job).size() == 1);
  ::unsetenv("HF_TOKEN");
  CHECK(test::read_file(desk.dir / "model/config.json") == "{}");
}

TEST_CASE(
    "of more files than are shown one by one a golden run sees the folders, and of a program never what is beside") {
  if (no_sandbox_for_goldens()) return;
  RunDesk desk;
  const std::string empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  for (int i = 0; i < 501; ++i) {
    const std::string name = "part" + std::to_string(i);
    test::write_file(desk.dir / "model" / name, "");
    desk.models[0].files.push_back({.path = name, .size = 0, .sha256 = *bundle::Digest::from_hex(empty)});
  }
  test::write_file(desk.dir / "home/tool", "#!/bin/sh\n");
  test::write_file(desk.dir / "home/release.key", "a key");
  const std::string home = (desk.dir / "home").string();
  desk.verifier(
      "cat \"$4/models/tiny/part500\" \"$4/bin/tool\" >/dev/null\n"
      "for file in " +
      home + "/release.key " + desk.dir.path().string() +
      "/verify/secret; do\n"
      "  [ ! -e $file ] || { echo \"$file is in reach\" >&2; exit 3; }\n"
      "done");
  test::write_file(desk.dir / "verify/secret", "a key");
  Job job = desk.job();
  job.programs.push_back({.source = desk.dir / "home/tool", .into = "bin/tool", .executable = true});
  CHECK(desk.run(job).size() == 1);
}

TEST_CASE("a result that is a link out of the job's folder is not followed") {
  if (no_sandbox_for_goldens()) return;
  RunDesk desk;
  test::write_file(desk.dir / "secret.json", golden_result());
  desk.verifier("ln -s " + (desk.dir / "secret.json").string() + " \"$6\"; exit 0");
  Job job = desk.job();
  CHECK_REFUSED(desk.run(job), Format, "left no file with its result");
}

TEST_CASE("a golden run that cannot be run, or has another result, stops the lock with what was said") {
  if (no_sandbox_for_goldens()) return;
  RunDesk desk;
  auto renamed = desk.job();
  renamed.goldens[0].name = "other";
  CHECK_REFUSED(desk.run(renamed), Usage, "another name than its table");
  auto gone = desk.job();
  gone.goldens[0].job->program = desk.dir / "none";
  CHECK_REFUSED(desk.run(gone), Missing, "the program that is to run a golden run is not there");
  auto failing = desk.job();
  desk.verifier("echo 'error while loading shared libraries: libtorch.so' >&2; exit 127");
  CHECK_REFUSED(desk.run(failing), SelfTest, "[[golden]] libraries");
  auto whole = desk.job();
  std::filesystem::remove(desk.dir / "verify/sealift-train");
  CHECK_REFUSED(desk.run(whole), Missing, "there is no sealift-train for a golden run");
  std::filesystem::remove(desk.dir / "model/config.json");
  CHECK_REFUSED(desk.run(whole), Missing, "models/tiny/config.json");
  CHECK_REFUSED(desk.job("device = \"tpu\"\n"), Usage, "another device");
  CHECK_REFUSED(desk.job("result = \"g.json\"\n"), Usage, "result");
  std::filesystem::remove(desk.dir / "tiny.toml");
  CHECK_REFUSED(desk.job(), Usage, "the job of a golden run is not there");
}
