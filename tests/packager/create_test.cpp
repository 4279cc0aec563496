// SPDX-License-Identifier: Apache-2.0
// Bundles from locks: the same bytes every time, and nothing half-done.
#include "packager/create.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "packager/files/new_bundle_folder.hpp"
#include "packager/host/process.hpp"
#include "packager/pack/volume_size.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/damaged_payload.hpp"
#include "sealift/bundle/manifest/chunk_layout.hpp"
#include "sealift/bundle/verified_bundle.hpp"
#include "tests/packager/workshop.hpp"
#include "tests/support/no_sockets.hpp"
#include "tests/support/noise.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::files_of;
using sealift::test::make_wheel;
using sealift::test::pinned_root;
using sealift::test::read_file;
using sealift::test::TinyWheel;
using sealift::test::Workshop;
using sealift::test::write_file;
namespace fs = std::filesystem;

TEST_CASE("a bundle that is asked for recovery data is the same bundle, and survives the loss of what it is for") {
  Workshop workshop;
  const CreateResult plain = workshop.pack("plain");
  workshop.recovery_percent = 100;
  const CreateResult result = workshop.pack();
  REQUIRE(result.manifest.payload.recovery);
  CHECK(result.manifest.installer_level == 5);
  CHECK(read_file(result.folder / "demo-1.vol001") == read_file(plain.folder / "demo-1.vol001"));
  CHECK(read_file(result.folder / "demo-1.chunks") == read_file(plain.folder / "demo-1.chunks"));
  fs::remove(result.folder / "demo-1.vol001");
  bundle::OpenBundle opened = bundle::open(result.folder);
  opened.ask = [](const bundle::Volume&, const bundle::Error&) { return std::nullopt; };
  const bundle::VerifiedBundle verified = bundle::verify(opened, pinned_root(workshop), bundle::system_time());
  bundle::DamagedPayload payload(verified, {result.folder});
  CHECK(payload.survey(1).mendable());
}

TEST_CASE("a lock becomes a bundle that verifies and holds exactly what was locked") {
  Workshop workshop;
  const CreateResult result = workshop.pack();
  CHECK(result.folder == workshop.dir / "out/demo-1");
  const bundle::VerifiedBundle verified =
      bundle::verify(bundle::open(result.folder), pinned_root(workshop), bundle::system_time());
  CHECK(bundle::check_every_chunk(verified, 2).empty());
  const bundle::Manifest& manifest = verified.manifest();
  CHECK(manifest.target.glibc == bundle::GlibcVersion{2, 28});
  REQUIRE(manifest.entries.size() == 3);
  CHECK(manifest.entries[0].path.text() == "programs/bin/run");
  CHECK(manifest.entries[0].executable);
  CHECK(manifest.entries[1].path.text() == "python/cpython-3.11.2.tar");
  CHECK(manifest.entries[1].encoding == bundle::Encoding::Zstd);
  CHECK(manifest.entries[2].path.text() == "wheels/demo-1.0-py3-none-any.whl");
  CHECK(manifest.entries[2].encoding == bundle::Encoding::Identity);
  std::string wheel;
  verified.stream(manifest.entries[2], [&](bundle::ByteView piece) { wheel += bundle::as_text(piece); });
  CHECK(bundle::sha256(bundle::as_bytes(wheel)) == workshop.lock.wheels[0].sha256);
  CHECK(manifest.environment.placements[0].into == "bin/run");
  CHECK(manifest.environment.site_packages.text() == "lib/python3.11/site-packages");
  CHECK(manifest.environment.imports == std::vector<std::string>{"demo"});
  REQUIRE(manifest.companions.size() == 2);
  CHECK(read_file(result.folder / "sealift-install") == "#!/bin/sh\n");
  CHECK(read_file(result.folder / "audit.sh") == "#!/bin/sh\n# audit\n");
}

TEST_CASE("the same lock and cache give the same bundle again with the network gone") {
  Workshop workshop;
  const TinyWheel tiny{.name = "built", .files = {{"built/__init__.py", ""}}};
  const LockedWheel built = workshop.add_wheel(tiny);
  write_file(workshop.cache() / "sha256" / built.sha256.hex(), make_wheel(tiny));
  workshop.lock.wheels.back().url.clear();
  workshop.lock.wheels.back().built_from =
      LockedBuild{.url = "https://example.invalid/built-1.0.tar.gz", .sha256 = built.sha256, .python = "3.11.2"};
  workshop.pack("one");
  const std::size_t asked = workshop.server.requests().size();
  CHECK(asked == 1);
  const pid_t child = ::fork();
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nowhere, 1), ::dup2(nowhere, 2);
    test::forbid_sockets();
    const std::string folder = workshop.dir.path().string();
    ::execl(SEALIFT_PACK, SEALIFT_PACK, "create", (folder + "/demo.lock.toml").c_str(), "--root",
            (folder + "/root.1.json").c_str(), "--key", (folder + "/release.key").c_str(), "-o",
            (folder + "/two").c_str(), "--cache", workshop.cache().c_str(), "--installer",
            (folder + "/sealift-install").c_str(), "--no-rehearsal", nullptr);
    ::_exit(98);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(workshop.server.requests().size() == asked);
  CHECK(files_of(workshop.dir / "one/demo-1") == files_of(workshop.dir / "two/demo-1"));
}

TEST_CASE("the manifest says of each wheel that was built whether in a sandbox") {
  Workshop workshop;
  for (const bool sandboxed : {true, false}) {
    const TinyWheel tiny{.name = sandboxed ? "held" : "loose", .files = {}};
    const LockedWheel built = workshop.add_wheel(tiny);
    write_file(workshop.cache() / "sha256" / built.sha256.hex(), make_wheel(tiny));
    workshop.lock.wheels.back().url.clear();
    workshop.lock.wheels.back().built_from =
        LockedBuild{.url = "https://example.invalid/x.tar.gz", .sha256 = built.sha256, .python = "3.11.2"};
    workshop.lock.wheels.back().built_from->sandboxed = sandboxed;
  }
  std::FILE* const said = std::fopen((workshop.dir / "said").c_str(), "w");
  const bundle::Manifest manifest = workshop.pack("out", 0, {}, said).manifest;
  std::fclose(said);
  CHECK(manifest.installer_level == 6);
  CHECK(wheels_built(manifest, bundle::WheelBuild::None).size() == 1);
  CHECK(bundle::few_of(wheels_built(manifest, bundle::WheelBuild::Sandboxed)) == "held-1.0-py3-none-any.whl");
  CHECK(bundle::few_of(wheels_built(manifest, bundle::WheelBuild::Unsandboxed)) == "loose-1.0-py3-none-any.whl");
  CHECK(read_file(workshop.dir / "said").find("built outside of a sandbox, and the signed manifest will say so") !=
        std::string::npos);
}

TEST_CASE("the same lock gives the same bytes, whatever the folder") {
  Workshop workshop;
  workshop.pack("one");
  workshop.pack("two");
  CHECK(files_of(workshop.dir / "one/demo-1") == files_of(workshop.dir / "two/demo-1"));
}

TEST_CASE("cutting into volumes changes nothing but the volumes, which end at chunks") {
  Workshop workshop;
  // Incompressible, so that there are several chunks.
  std::string noise(9'000'000, '\0');
  unsigned seed = 5;
  for (char& byte : noise) byte = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  workshop.add_wheel({.name = "noise", .files = {{"noise.bin", noise}}});
  bundle::Manifest whole = workshop.pack("one").manifest;
  const bundle::Manifest cut = workshop.pack("two", 5 << 20).manifest;
  REQUIRE(cut.payload.volumes.size() == 2);
  const bundle::ChunkLayout layout(cut.payload);
  const std::uint64_t end = cut.payload.volumes[0].size;
  CHECK(end <= 5 << 20);
  CHECK(layout.begin_of(layout.at(end)) == end);
  CHECK(end % 4096 == 0);  // so that the next volume is read past the page cache
  whole.payload.volumes = cut.payload.volumes;
  CHECK(whole == cut);
  std::string joined;
  for (const bundle::Volume& volume : cut.payload.volumes)
    joined += read_file(workshop.dir / "two/demo-1" / volume.name);
  CHECK(joined == read_file(workshop.dir / "one/demo-1/demo-1.vol001"));
  CHECK_REFUSED(workshop.pack("three", 1000), Usage, "smaller than a chunk");
  CHECK_FALSE(fs::exists(workshop.dir / "three/demo-1"));
}

TEST_CASE("the payload is a tar that the system's tar lists") {
  Workshop workshop;
  workshop.pack();
  const std::string listing = run_checked({"tar", "-tf", (workshop.dir / "out/demo-1/demo-1.vol001").string()});
  CHECK(listing.starts_with("oci-layout\n"));
  CHECK(listing.find("blobs/sha256/" + workshop.lock.wheels[0].sha256.hex()) != std::string::npos);
  CHECK(listing.find("index.json") != std::string::npos);
}

TEST_CASE("no path of the packing machine goes into a bundle") {
  Workshop workshop;
  for (const auto& [name, bytes] : files_of(workshop.pack().folder))
    CHECK(bytes.find(workshop.dir.path().string()) == std::string::npos);
}

TEST_CASE("a bundle that exists is not overwritten") {
  Workshop workshop;
  workshop.pack();
  const auto before = files_of(workshop.dir / "out/demo-1");
  CHECK_REFUSED(workshop.pack(), Conflict, "demo-1");
  CHECK(files_of(workshop.dir / "out/demo-1") == before);
}

TEST_CASE("what an interrupted run left is cleared away") {
  Workshop workshop;
  write_file(workshop.dir / "out/.demo-1.partial/demo-1.vol001", "half");
  workshop.pack();
  CHECK_FALSE(fs::exists(workshop.dir / "out/.demo-1.partial"));
}

TEST_CASE("a failure leaves no bundle and nothing half-done") {
  Workshop workshop;
  workshop.lock.wheels[0].sha256 = bundle::Digest{};
  CHECK_REFUSED(workshop.pack(), Digest, "demo-1.0-py3-none-any.whl");
  CHECK_FALSE(fs::exists(workshop.dir / "out/demo-1"));
  CHECK_FALSE(fs::exists(workshop.dir / "out/.demo-1.partial"));
}

TEST_CASE("a warning is given once for a lock, and counted in the runs that follow") {
  Workshop workshop;
  workshop.add_wheel({.name = "changed",
                      .files = {{"changed.txt", "longer than it was"}},
                      .record_digests = {{"changed.txt", "sha256=" + std::string(43, 'A')}},
                      .record_sizes = {{"changed.txt", "5"}}});
  const auto said = [&](const std::string& out) {
    std::FILE* const stream = std::fopen((workshop.dir / "said").c_str(), "w");
    workshop.pack(out, 0, {}, stream);
    std::fclose(stream);
    return read_file(workshop.dir / "said");
  };
  const std::string record = "warning: the RECORD of changed-1.0-py3-none-any.whl",
                    counted = "1 warning(s) as an earlier";
  const std::string first = said("one"), second = said("two");
  CHECK(first.find(record) != first.npos);
  CHECK(first.find(counted) == first.npos);
  CHECK(second.find(record) == second.npos);
  CHECK(second.find(counted) != second.npos);
  workshop.lock.version = 2;  // another lock is another reader
  CHECK(said("three").find(record) != std::string::npos);
  fs::permissions(workshop.cache() / "told", fs::perms(0777));  // where others may write, nothing is believed
  CHECK(said("four").find(record) != std::string::npos);
}

TEST_CASE("a cache that can keep no more notes costs a warning, and no bundle") {
  Workshop workshop;
  const TinyWheel big{.name = "noise", .files = {{"noise.bin", test::noise(5'000'000)}}};
  const LockedWheel wheel = workshop.add_wheel(big);
  write_file(workshop.cache() / "sha256" / wheel.sha256.hex(), make_wheel(big));
  // Where these notes would be, folders lie, which no file replaces: of its chunks, once the bundle is whole; and of
  // what its files need.
  fs::create_directories(workshop.cache() / "chunks" / (wheel.sha256.hex() + "-sha256-4194304") / "x");
  fs::create_directories(workshop.cache() / "native" / (wheel.sha256.hex() + "-python3.11.4") / "x");
  std::FILE* const said = std::fopen((workshop.dir / "said").c_str(), "w");
  const CreateResult result = workshop.pack("out", 0, {}, said);
  std::fclose(said);
  const std::string text = read_file(workshop.dir / "said");
  CHECK_MESSAGE(text.find("warning: the cache could not keep 2 note(s)") != std::string::npos, text);
  CHECK(text.find("make room for the cache") != std::string::npos);
  CHECK(bundle::check_every_chunk(
            bundle::verify(bundle::open(result.folder), pinned_root(workshop), bundle::system_time()), 2)
            .empty());
  fs::remove_all(workshop.cache() / "chunks");
  fs::remove_all(workshop.cache() / "native");
  CHECK(files_of(workshop.pack("again").folder) == files_of(result.folder));
}

TEST_CASE("several creates in one cache at once all make the bundle") {
  Workshop workshop;
  workshop.lock.variables = {{"WANDB_MODE", "offline"}};  // text that each of them writes into the cache
  const CreateResult alone = workshop.pack("alone");      // fetches
  const std::string text = "WANDB_MODE=offline\n";
  for (int round = 0; round < 10; ++round) {
    fs::remove(workshop.cache() / "sha256" / bundle::sha256(bundle::as_bytes(text)).hex());
    fs::remove_all(workshop.cache() / "chunks");
    fs::remove_all(workshop.cache() / "native");
    std::vector<std::string> faults(4);
    {
      std::vector<std::jthread> packers;
      for (std::size_t i = 0; i < faults.size(); ++i)
        packers.emplace_back([&, i] {
          try {
            const std::string out = std::to_string(round) + "-" + std::to_string(i);
            if (files_of(workshop.pack_locked(out).folder) != files_of(alone.folder)) faults[i] = "another bundle";
          } catch (const std::exception& error) {
            faults[i] = error.what();
          }
        });
    }
    for (const std::string& fault : faults) CHECK(fault == "");
  }
}

TEST_CASE("several writers of one bundle: each has it to itself or is told who has it") {
  const test::TempDir dir;
  const fs::path folder = dir / "demo-1", partial = dir / ".demo-1.partial";
  std::atomic<int> whole{0};
  std::vector<std::string> faults(4);
  {
    std::vector<std::jthread> packers;
    for (std::size_t i = 0; i < faults.size(); ++i)
      packers.emplace_back([&, i] {
        for (int round = 0; round < 500; ++round) try {
            PartialFolder own(folder);
            bundle::write_text(own.path() / "seal", std::to_string(i));
            if (files_of(own.path()).size() != 1) faults[i] = "another one's files";
            if (round % 2 == 0) continue;  // it fails, and removes what it made
            own.become(folder);
            if (read_file(folder / "seal") != std::to_string(i)) faults[i] = "another one's bundle";
            fs::rename(folder, dir / ("whole-" + std::to_string(++whole)));
          } catch (const bundle::Error& error) {
            if (error.code() != bundle::ErrorCode::Conflict) faults[i] = error.what();
          } catch (const std::exception& error) {
            faults[i] = error.what();
          }
      });
  }
  for (const std::string& fault : faults) CHECK(fault == "");
  CHECK(whole > 0);
  CHECK_FALSE(fs::exists(partial));
}

TEST_CASE("an installer that is dynamic or not there is refused") {
  Workshop workshop;
  fs::copy_file("/proc/self/exe", workshop.dir / "sealift-install", fs::copy_options::overwrite_existing);
  CHECK_REFUSED(workshop.pack(), Platform, "static");
  fs::remove(workshop.dir / "sealift-install");
  CHECK_REFUSED(workshop.pack(), Missing, "--installer");
}

TEST_CASE("a bundle is not made without the script that auditors check it with") {
  Workshop workshop;
  fs::remove(workshop.dir / "audit.sh");
  CHECK_REFUSED(workshop.pack(), Missing, "audit.sh");
  CHECK(!fs::exists(workshop.dir / "out"));
}

TEST_CASE("sizes of volumes are read as discs and dd say them") {
  CHECK(parse_size("0") == 0);
  CHECK(parse_size("4096") == 4096);
  CHECK(parse_size("1G") == std::uint64_t{1} << 30);
  CHECK(parse_size("25GB") == 25'000'000'000);
  CHECK(parse_size("4700M") == std::uint64_t{4700} << 20);
  for (const char* bad : {"", "G", "1X", "1GiB", "-1", "1.5G", "99999999999999999999", "9999999999T"})
    CHECK_REFUSED(parse_size(bad), Usage, "");
}

TEST_CASE("a strict root that has expired signs no bundle, and one that is not strict is warned of") {
  Workshop workshop;
  bundle::Root root = test::make_root({&workshop.key}, {&workshop.key});
  root.expires = "2026-01-02T00:00:00Z";
  root.strict = true;
  write_file(workshop.dir / "root.1.json", write_envelope(test::signed_root(root, {&workshop.key})));
  CHECK_REFUSED(workshop.pack(), Revoked, "the root has expired");
  CHECK_REFUSED(workshop.pack(), Revoked, "make the next root");
  CHECK_FALSE(fs::exists(workshop.dir / "out"));
  root.strict = false;
  write_file(workshop.dir / "root.1.json", write_envelope(test::signed_root(root, {&workshop.key})));
  std::FILE* stream = std::fopen((workshop.dir / "said").c_str(), "w");
  workshop.pack("out", 0, {}, stream);
  std::fclose(stream);
  CHECK(read_file(workshop.dir / "said").find("expired on 2026-01-02") != std::string::npos);
}

TEST_CASE("a key that may not sign bundles makes none") {
  Workshop workshop;
  const bundle::PrivateKey other = bundle::PrivateKey::generate();
  fs::remove(workshop.dir / "release.key");
  bundle::write_text(workshop.dir / "release.key", other.pem(), 0600);
  CHECK_REFUSED(workshop.pack(), Usage, "may not sign bundles");
  const bundle::Root root = test::make_root({&other}, {&workshop.key});  // it may sign roots
  write_file(workshop.dir / "root.1.json", write_envelope(test::signed_root(root, {&other})));
  CHECK_REFUSED(workshop.pack(), Usage, "may not sign bundles");
  CHECK_FALSE(fs::exists(workshop.dir / "out"));
}

TEST_CASE("the environment's variables travel as one file of it, and a bundle without any has none") {
  Workshop workshop;
  const auto has = [](const CreateResult& result) {
    return result.manifest.find(bundle::SafePath::parse("environment/variables", "")) != nullptr;
  };
  CHECK_FALSE(has(workshop.pack("without")));
  workshop.lock.variables = {{"NLTK_DATA", "${PREFIX}/data"}, {"WANDB_MODE", "offline"}};
  const CreateResult result = workshop.pack("with");
  REQUIRE(has(result));
  const bundle::VerifiedBundle verified =
      bundle::verify(bundle::open(result.folder), pinned_root(workshop), bundle::system_time());
  std::string text;
  verified.stream(*result.manifest.find(bundle::SafePath::parse("environment/variables", "")),
                  [&](bundle::ByteView piece) { text += bundle::as_text(piece); });
  CHECK(text == "NLTK_DATA=${PREFIX}/data\nWANDB_MODE=offline\n");
  const auto& placements = result.manifest.environment.placements;
  CHECK(std::any_of(placements.begin(), placements.end(),
                    [](const auto& placement) { return placement.into == "share/sealift/environment"; }));
}
