// SPDX-License-Identifier: Apache-2.0
// Bundles from locks: the same bytes every time, nothing that cannot be installed, nothing half-done.
#include "packager/create.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/wait.h>

#include <atomic>
#include <functional>

#include "bundle/core/openssl.hpp"
#include "packager/compare/diff.hpp"
#include "packager/compare/inspect.hpp"
#include "packager/files/known_chunks.hpp"
#include "packager/host/process.hpp"
#include "packager/pack/delta.hpp"
#include "packager/pack/recut.hpp"
#include "packager/pack/volume_size.hpp"
#include "sealift/bundle/damaged_payload.hpp"
#include "sealift/bundle/manifest/chunk_layout.hpp"
#include "sealift/bundle/manifest/inventory.hpp"
#include "sealift/bundle/verified_bundle.hpp"
#include "tests/packager/workshop.hpp"
#include "tests/support/hostile/hostile_gpu_code.hpp"
#include "tests/support/no_sockets.hpp"
#include "tests/support/noise.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_patch.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::add_key, sealift::test::next_root, sealift::test::one_key_root, sealift::test::signed_document,
    sealift::test::signed_root;
using sealift::test::files_of;
using sealift::test::make_wheel;
using sealift::test::read_file;
using sealift::test::TinyWheel;
using sealift::test::Workshop;
using sealift::test::write_file;
namespace fs = std::filesystem;

// This program is linked with --wrap, so that what it hashes is counted.
static std::atomic<std::uint64_t> hashed{0};
extern "C" {
int __real_EVP_DigestUpdate(EVP_MD_CTX* context, const void* bytes, size_t count);
int __wrap_EVP_DigestUpdate(EVP_MD_CTX* context, const void* bytes, size_t count) {
  hashed += count;
  return __real_EVP_DigestUpdate(context, bytes, count);
}
}

namespace {

bundle::Trust pinned_root(const Workshop& workshop) {
  return test::pinned(test::one_key_root(workshop.key));
}

}  // namespace

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

TEST_CASE("what a wheel becomes on disk is counted in blocks, with scripts, RECORD, INSTALLER and folders") {
  Workshop workshop;
  const bundle::Entry entry = workshop.pack().manifest.entries[2];
  // Two files of the package (4 KiB and 12 KiB), WHEEL, METADATA, entry_points.txt, RECORD, INSTALLER, the script;
  // folders: lib, lib/python3.11, site-packages, demo, demo-1.0.dist-info, bin.
  CHECK(entry.installed_files == 8 + 6);
  CHECK(entry.installed_size == (1 + 3 + 6 + 6) * 4096);
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

TEST_CASE("a wheel that is damaged in the cache is fetched again before it is packed") {
  Workshop workshop;
  workshop.pack("one");
  write_file(workshop.cache() / "sha256" / workshop.lock.wheels[0].sha256.hex(), "not a wheel");
  workshop.pack("two");
  CHECK(files_of(workshop.dir / "one/demo-1") == files_of(workshop.dir / "two/demo-1"));
}

TEST_CASE("a wheel whose damage no reader sees is found while it is written, and fetched again") {
  Workshop workshop;
  workshop.pack("one");  // keeps what the native check read of the wheel
  const fs::path file = workshop.cache() / "sha256" / workshop.lock.wheels[0].sha256.hex();
  const std::size_t before = workshop.server.requests().size();
  workshop.pack("two");
  CHECK(workshop.server.requests().size() == before);
  std::string bytes = read_file(file);
  bytes[bytes.find("libdemo.so") + 60] ^= 1;  // in the compressed bytes of a member
  write_file(file, bytes);
  workshop.pack("three");
  CHECK(workshop.server.requests().size() == before + 1);
  CHECK(files_of(workshop.dir / "one/demo-1") == files_of(workshop.dir / "three/demo-1"));
  CHECK_FALSE(fs::exists(workshop.dir / "three/.demo-1.partial"));
}

TEST_CASE("a damaged file is fetched again where it is read, and no step is taken twice for it") {
  Workshop workshop;
  const LockedWheel more = workshop.add_wheel({.name = "more", .files = {{"more.py", "MORE = 1\n"}}});
  workshop.pack("one");
  const fs::path file = workshop.cache() / "sha256" / workshop.lock.wheels[0].sha256.hex();
  std::string bytes = read_file(file);
  SUBCASE("in planning: its directory is gone") {
    write_file(file, bytes.substr(0, bytes.size() - 30));
  }
  SUBCASE("in the native check, which has not kept what it read: a member is another one") {
    fs::remove_all(workshop.cache() / "native");
    bytes[bytes.find("libdemo.so") + 60] ^= 1;
    write_file(file, bytes);
  }
  SUBCASE("in writing") {
    bytes[bytes.find("libdemo.so") + 60] ^= 1;
    write_file(file, bytes);
  }
  const std::size_t before = workshop.server.requests().size();
  const fs::path said = workshop.dir / "said";
  std::FILE* stream = std::fopen(said.c_str(), "w");
  workshop.pack("two", 0, {}, stream);
  std::fclose(stream);
  CHECK(workshop.server.requests().size() == before + 1);
  CHECK(files_of(workshop.dir / "one/demo-1") == files_of(workshop.dir / "two/demo-1"));
  const std::string text = read_file(said);
  INFO(text);
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  CHECK(count("demo-1.0-py3-none-any.whl in the cache is damaged") == 1);
  CHECK(count("native: ") == 1);
  CHECK(count("writing demo-1") == 1);
}

TEST_CASE("a file that was packed or fetched before is packed with one pass over its bytes") {
  Workshop workshop;
  std::string noise(9'000'000, '\0');
  unsigned seed = 5;
  for (char& byte : noise) byte = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  workshop.add_wheel({.name = "noise", .files = {{"noise.bin", noise}}});
  workshop.pack("one");
  for (const char* out : {"two", "three"}) {
    hashed = 0;
    const bundle::Manifest manifest = workshop.pack(out).manifest;
    MESSAGE("hashed " << hashed << " of " << manifest.payload.size);
    CHECK(hashed >= manifest.payload.size);
    CHECK(hashed < manifest.payload.size + 300'000);  // interpreter, programs, manifest
    // Without what is known of its chunks, SHA-256 is computed as well.
    fs::remove_all(workshop.cache() / "chunks");
    hashed = 0;
    const std::string again = std::string(out) + "-again";
    CHECK(workshop.pack(again).manifest == manifest);
    CHECK(hashed > 2 * noise.size());
    CHECK(files_of(workshop.dir / again / "demo-1") == files_of(workshop.dir / out / "demo-1"));
  }
}

TEST_CASE("a file that is locked is read once, for its SHA-256 and for its chunks") {
  Workshop workshop;
  const std::string bytes = test::noise(9'000'000);
  write_file(workshop.dir / "file", bytes);
  const KnownChunks known{Cache(workshop.cache())};
  std::uint64_t read = 0;
  hashed = 0;
  const bundle::Digest sha256 = known.learn(workshop.dir / "file", [&](std::uint64_t count) { read += count; });
  CHECK(read == bytes.size());
  CHECK(hashed < 2 * bytes.size() + 1000);
  CHECK(sha256 == bundle::sha256(bundle::as_bytes(bytes)));
  bundle::ChunkDigester digester;
  digester.update(bundle::as_bytes(bytes));
  CHECK(known.read(sha256, bytes.size(), bundle::Payload{}) == digester.finish());
  // The only chunk of a small file has the file's own digest, unless chunks are digested by another algorithm.
  write_file(workshop.dir / "small", "small");
  hashed = 0;
  const bundle::Digest small = known.learn(workshop.dir / "small");
  CHECK(hashed == 5);
  CHECK(known.read(small, 5, bundle::Payload{}) == std::vector<bundle::Digest>{small});
  CHECK(known.read(small, 0, bundle::Payload{}) == std::vector<bundle::Digest>{});
  CHECK_FALSE(known.read(small, 5, {.digest = bundle::DigestAlgorithm::Sm3}));
  CHECK_FALSE(known.read(small, bundle::kDefaultChunkSize + 1, bundle::Payload{}));
}

TEST_CASE("what is known of chunks counts for nothing where it is damaged or wrong") {
  Workshop workshop;
  const LockedWheel wheel = workshop.add_wheel({.name = "noise", .files = {{"noise.bin", test::noise(9'000'000)}}});
  workshop.pack("one");
  const auto known = [&] {
    return KnownChunks(Cache(workshop.cache())).read(wheel.sha256, wheel.size, bundle::Payload{});
  };
  const std::optional<std::vector<bundle::Digest>> right = known();
  REQUIRE(right);
  REQUIRE(right->size() == 3);
  SUBCASE("damaged") {
    for (const fs::directory_entry& file : fs::directory_iterator(workshop.cache() / "chunks")) {
      std::string bytes = read_file(file.path());
      bytes[0] ^= 1;
      write_file(file.path(), bytes);
    }
    CHECK_FALSE(known());
  }
  SUBCASE("torn") {
    for (const fs::directory_entry& file : fs::directory_iterator(workshop.cache() / "chunks"))
      write_file(file.path(), read_file(file.path()).substr(0, 40));
    CHECK_FALSE(known());
  }
  SUBCASE("of other bytes") {
    KnownChunks(Cache(workshop.cache())).write(wheel.sha256, wheel.size, bundle::Payload{}, {bundle::Digest{}});
  }
  SUBCASE("of as many other bytes") {
    std::vector<bundle::Digest> wrong = *right;
    std::swap(wrong[0], wrong[2]);
    KnownChunks(Cache(workshop.cache())).write(wheel.sha256, wheel.size, bundle::Payload{}, wrong);
  }
  SUBCASE("of what compressing gave") {
    const KnownChunks chunks{Cache(workshop.cache())};
    const bundle::Digest stored = chunks.compressed(workshop.lock.interpreter.sha256).value().sha256;
    const fs::path file = workshop.cache() / "sha256" / stored.hex();
    SUBCASE("whose file is gone") {
      fs::remove(file);
    }
    SUBCASE("whose file is damaged") {
      std::string bytes = read_file(file);
      bytes[bytes.size() / 2] ^= 1;
      write_file(file, bytes);
    }
    SUBCASE("whose file is cut short") {
      fs::resize_file(file, fs::file_size(file) - 1);
    }
  }
  workshop.pack("two");
  CHECK(files_of(workshop.dir / "one/demo-1") == files_of(workshop.dir / "two/demo-1"));
  CHECK(known() == right);
}

TEST_CASE("a wheel with a file that is not what its RECORD says is refused when it is packed") {
  Workshop workshop;
  workshop.add_wheel({.name = "liar",
                      .files = {{"liar.py", "LIE = 1\n"}},
                      .record_digests = {{"liar.py", "sha256=" + std::string(43, 'A')}}});
  CHECK_REFUSED(workshop.pack(), Digest, "liar.py");
  CHECK_REFUSED(workshop.pack(), Digest, "RECORD");  // nor is it remembered as one that was looked at
}

TEST_CASE("an interpreter's tar that says other digests than its files have is refused when it is packed") {
  Workshop workshop;
  const fs::path file = workshop.cache() / "sha256" / workshop.lock.interpreter.sha256.hex();
  std::string tar = read_file(file);
  const std::string said = "sha256 " + bundle::sha256(bundle::as_bytes("# os\n")).hex();
  REQUIRE(tar.find(said) != tar.npos);
  tar.replace(tar.find(said), said.size(), "sha256 " + std::string(64, '0'));
  workshop.lock.interpreter.sha256 = bundle::sha256(bundle::as_bytes(tar));
  write_file(workshop.cache() / "sha256" / workshop.lock.interpreter.sha256.hex(), tar);
  CHECK_REFUSED(workshop.pack(), Digest, "lib/python3.11/os.py");
}

TEST_CASE("a lost or damaged interpreter is refused with what to do") {
  Workshop workshop;
  const fs::path file = workshop.cache() / "sha256" / workshop.lock.interpreter.sha256.hex();
  write_file(file, "damaged");
  CHECK_REFUSED(workshop.pack(), Digest, "lock again");
  fs::remove(file);
  const std::size_t before = workshop.server.requests().size();
  CHECK_REFUSED(workshop.pack(), Missing, "lock again");
  CHECK(workshop.server.requests().size() == before);  // known before anything is fetched
}

TEST_CASE("a program that changed after it was locked is refused") {
  Workshop workshop;
  write_file(workshop.dir / "bin/run", "#!/bin/sh\necho other\n");
  CHECK_REFUSED(workshop.pack(), Digest, "changed after it was locked");
  fs::remove(workshop.dir / "bin/run");
  CHECK_REFUSED(workshop.pack(), Missing, "bin/run");
}

TEST_CASE("wheels, programs and interpreter that would install the same path are refused by name") {
  SUBCASE("two wheels") {
    Workshop workshop;
    workshop.add_wheel({.name = "other", .files = {{"demo/__init__.py", ""}}});
    CHECK_REFUSED(workshop.pack(), Conflict, "demo-1.0-py3-none-any.whl and other-1.0-py3-none-any.whl");
  }
  SUBCASE("a script and a program") {
    Workshop workshop;
    workshop.add_program("bin/demo", "#!/bin/sh\n");
    CHECK_REFUSED(workshop.pack(), Conflict, "bin/demo: demo-1.0-py3-none-any.whl and the program bin/demo");
  }
  SUBCASE("a wheel and the interpreter") {
    Workshop workshop;
    workshop.add_wheel({.name = "evil", .files = {{"evil-1.0.data/data/lib/python3.11/os.py", ""}}});
    CHECK_REFUSED(workshop.pack(), Format, "lib/python3.11/os.py");  // nobody else's, whether it is there or not
  }
}

TEST_CASE("native libraries that do not hold together are refused before anything is written") {
  Workshop workshop;
  const std::string folder = workshop.dir.path().string();
  write_file(workshop.dir / "code.c", "#include <math.h>\ndouble f(double x) { return pow(x, x); }\n");
  run_checked(
      {"cc", "-shared", "-fPIC", "-Wl,-soname,libgone.so.1", "-o", folder + "/libgone.so.1", folder + "/code.c"});
  run_checked({"cc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", folder + "/_c.abi3.so", folder + "/code.c",
               folder + "/libgone.so.1", "-lm"});
  workshop.lock.target.glibc = {2, 17};  // pow of today is GLIBC_2.29
  workshop.add_wheel({.name = "native", .files = {{"native/_c.abi3.so", read_file(workshop.dir / "_c.abi3.so")}}});
  const bundle::Error error = test::refusal([&] { workshop.pack(); });
  CHECK(error.code() == bundle::ErrorCode::Missing);
  CHECK(test::mentions(error, "libgone.so.1 is not in the bundle"));
  CHECK(test::mentions(error, "native-1.0-py3-none-any.whl needs glibc 2.29"));
  CHECK_FALSE(fs::exists(workshop.dir / "out"));

  SUBCASE("and the manifest says the floor of what was packed") {
    workshop.lock.target.glibc = {2, 31};
    workshop.add_wheel({.name = "gone", .files = {{"native.libs/libgone.so.1", read_file(folder + "/libgone.so.1")}}});
    const CreateResult result = workshop.pack();
    CHECK(result.manifest.glibc_floor == bundle::GlibcVersion{2, 29});
    CHECK(result.native.files == 2);
    CHECK(result.manifest.installer_level == 1);
    CHECK_FALSE(result.manifest.environment.runtime);
  }
  SUBCASE("unless a new enough glibc is carried, which the manifest says too") {
    workshop.lock.runtime = {.glibc = {2, 36}, .kernel = "3.2.0"};
    CHECK_REFUSED(workshop.pack(), Format, "do not agree whether glibc is carried");
    workshop.add_interpreter({{"lib/runtime/libc.so.6", {.text = "glibc"}}});
    workshop.add_wheel({.name = "gone", .files = {{"native.libs/libgone.so.1", read_file(folder + "/libgone.so.1")}}});
    const CreateResult result = workshop.pack();
    CHECK(result.manifest.environment.runtime == workshop.lock.runtime);
    CHECK(result.manifest.target.glibc == bundle::GlibcVersion{2, 17});
    CHECK(result.manifest.glibc_floor == bundle::GlibcVersion{2, 29});
    CHECK(result.manifest.installer_level == 2);
  }
  SUBCASE("and the manifest says the driver that CUDA needs") {
    run_checked({"cc", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libcudart.so.13", "-o", folder + "/libcudart",
                 folder + "/code.c"});
    workshop.lock.target.glibc = {2, 31};
    workshop.add_wheel({.name = "gone",
                        .files = {{"native.libs/libgone.so.1", read_file(folder + "/libgone.so.1")},
                                  {"native.libs/libcudart.so.13", read_file(folder + "/libcudart")}}});
    const CreateResult result = workshop.pack();
    CHECK(result.manifest.driver_floor == "580");
    CHECK(result.manifest.installer_level == 2);
  }
}

TEST_CASE("a bundle for other GPUs than the profile has is refused, or packed where the job overrules it") {
  Workshop workshop;
  const std::string torch = test::elf_with_gpu_code(test::fat_binary({"sm_75", "sm_90a"}));
  workshop.add_wheel({.name = "torch", .files = {{"torch/lib/libkernels.so", torch}}});
  workshop.lock.target.gpus = {"8 x Tesla V100-SXM2-32GB"};
  const bundle::Error error = test::refusal([&] { workshop.pack(); });
  CHECK(error.code() == bundle::ErrorCode::Platform);
  CHECK(test::mentions(error, "torch-1.0-py3-none-any.whl has no code that 8 x Tesla V100-SXM2-32GB (sm_70) can run"));
  CHECK_FALSE(fs::exists(workshop.dir / "out"));
  workshop.lock.overruled = {"gpu"};
  const CreateResult result = workshop.pack();
  CHECK(read_lock(workshop.dir / "demo.lock.toml").overruled == workshop.lock.overruled);
  CHECK(result.manifest.overruled == workshop.lock.overruled);
  CHECK(result.manifest.gpu_code == std::map<std::string, std::string>{{"torch-1.0", "sm_75 sm_90a"}});
  CHECK(result.manifest.installer_level == 4);
  const std::string shown = inspect_text(inspect(result.folder, std::nullopt));
  CHECK(shown.find("torch-1.0: sm_75 sm_90a") != std::string::npos);
  CHECK(shown.find("overruled  gpu") != std::string::npos);
}

TEST_CASE("a rule in the job gives a path of two wheels to one of them, and the other leaves it out") {
  Workshop workshop;
  const std::string place = "lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2";
  const auto add = [&](const std::string& name, const std::string& library) {
    workshop.add_wheel({.name = name, .files = {{"nvidia/nccl/lib/libnccl.so.2", library}, {name + ".py", ""}}});
  };
  add("nvidia_nccl_cu12", "older");
  add("nvidia_nccl_cu13", "newer");
  CHECK_REFUSED(workshop.pack("none"), Conflict, "nvidia_nccl_cu12-1.0-py3-none-any.whl and nvidia_nccl_cu13");
  CHECK_REFUSED(workshop.pack("none"), Conflict, "[[owner]]");
  workshop.lock.owners = {{.path = "nvidia/nccl", .package = "nvidia-nccl-cu13"}};
  const CreateResult result = workshop.pack("one");
  CHECK(read_lock(workshop.dir / "demo.lock.toml").owners == workshop.lock.owners);
  CHECK(result.manifest.installer_level == 2);
  for (const auto& placement : result.manifest.environment.placements) {
    const bool loser = placement.entry.text() == "wheels/nvidia_nccl_cu12-1.0-py3-none-any.whl";
    REQUIRE(placement.left_out.size() == (loser ? 1 : 0));
    if (loser) CHECK(placement.left_out[0].text() == place);
  }
  CHECK(inspect_text(inspect(result.folder, std::nullopt)).find(place + ", which another package owns") !=
        std::string::npos);
  workshop.lock.owners = {{.path = place, .package = "nvidia-nccl-cu14"}};
  CHECK_REFUSED(workshop.pack("two"), Usage, "it does not have " + place);
}

TEST_CASE("a package's start-up file needs a rule for that package with its digest, which lock and manifest name") {
  Workshop workshop;
  const std::string line = "import sys; sys.flags\n";
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes(line));
  workshop.add_wheel({.name = "My_Dsl", .files = {{"my_dsl.pth", line}, {"my_dsl/__init__.py", ""}}});
  CHECK_REFUSED(workshop.pack("none"), Format, digest.hex());
  CHECK_REFUSED(workshop.pack("none"), Format, "[[startup]]");
  workshop.lock.startup_files = {{.package = "demo", .sha256 = digest}};
  CHECK_REFUSED(workshop.pack("another"), Format, "when Python starts");
  workshop.lock.startup_files = {{.package = "my-dsl", .sha256 = digest}};
  const CreateResult result = workshop.pack("one");
  CHECK(read_lock(workshop.dir / "demo.lock.toml").startup_files == workshop.lock.startup_files);
  CHECK(result.manifest.installer_level == 3);
  CHECK(result.manifest.environment.startup_files == std::vector<bundle::Digest>{digest});
  const std::string shown = inspect_text(inspect(result.folder, std::nullopt));
  CHECK(shown.find("SHA-256 " + digest.hex() + " may run code") != std::string::npos);
  workshop.lock.startup_files.push_back({.package = "demo", .sha256 = bundle::sha256(bundle::as_bytes("else"))});
  CHECK_REFUSED(workshop.pack("two"), Usage, "1 of 2 were found");
}

TEST_CASE("what another wheel's start-up file would run is refused when a bundle is made, too") {
  Workshop workshop;
  workshop.add_wheel({.name = "spaced", .files = {{"spaced.pth", "spaced_path\n"}, {"spaced_path/a.py", ""}}});
  workshop.pack("good");
  workshop.add_wheel({.name = "evil", .files = {{"spaced_path/sitecustomize.py", ""}}});
  CHECK_REFUSED(workshop.pack("bad"), Conflict, "spaced_path");
}

TEST_CASE("with an inventory a bundle lists what the target has and carries the rest") {
  Workshop workshop;
  workshop.add_wheel({.name = "more", .files = {{"more/__init__.py", "MORE = 1\n"}}});
  const CreateResult whole = workshop.pack("whole");
  bundle::Inventory inventory{.generations = {{.name = "demo", .channel = "test", .version = 0}}, .items = {}};
  for (const bundle::Entry& entry : whole.manifest.entries)
    if (entry.path.text().find("more") == std::string::npos) inventory.items.insert(bundle::store_item_name(entry));
  const fs::path file = workshop.dir / "site.inventory";
  write_file(file, bundle::write_inventory(inventory));
  const CreateResult result = workshop.pack("delta", 0, file);
  CHECK(result.manifest.base == bundle::inventory_digest(inventory));
  CHECK(result.manifest.payload.size < whole.manifest.payload.size);
  REQUIRE(result.manifest.entries.size() == whole.manifest.entries.size());
  for (std::size_t i = 0; i < result.manifest.entries.size(); ++i) {
    const bundle::Entry &listed = result.manifest.entries[i], &carried = whole.manifest.entries[i];
    CHECK(listed.path == carried.path);
    CHECK(listed.sha256 == carried.sha256);
    CHECK(listed.installed_size == carried.installed_size);
    CHECK(listed.absent == (listed.path.text().find("more") == std::string::npos));
  }
  CHECK(result.manifest.environment == whole.manifest.environment);
  const bundle::VerifiedBundle verified =
      bundle::verify(bundle::open(result.folder), pinned_root(workshop), bundle::system_time());
  CHECK(bundle::check_every_chunk(verified, 2).empty());
  CHECK(files_of(workshop.pack("again", 0, file).folder) == files_of(result.folder));

  const std::string text = inspect_text(inspect(result.folder, std::nullopt));
  CHECK(text.find("absent     3, ") != std::string::npos);
  CHECK(text.find("sha256:" + result.manifest.base->hex()) != std::string::npos);
  CHECK(text.find("    absent  wheel  wheels/demo-1.0-py3-none-any.whl") != std::string::npos);
  const Diff changed = diff(read_diff_side(whole.folder), read_diff_side(result.folder));
  CHECK(changed.items.empty());
  REQUIRE(changed.facts.size() == 1);
  CHECK(changed.facts[0].name == "base");
  bundle::Progress progress(nullptr);
  const RecutResult cut = recut({.bundle = result.folder,
                                 .fingerprint = *pinned_root(workshop).state.pinned,
                                 .keys = {workshop.dir / "release.key"},
                                 .passphrase = {},
                                 .out = workshop.dir / "cut",
                                 .volume_size = std::uint64_t{5} << 20},
                                progress);
  CHECK(cut.manifest == result.manifest);
}

TEST_CASE("a delta made from the bundle that was sent last is, byte for byte, the one made from its inventory") {
  Workshop workshop;
  const CreateResult sent = workshop.pack("sent");
  bundle::Inventory inventory{.generations = {{.name = "demo",
                                               .channel = "test",
                                               .version = 1,
                                               .identity = bundle::open(sent.folder).seal.manifest.digest()}},
                              .items = {}};
  for (const bundle::Entry& entry : sent.manifest.entries) inventory.items.insert(bundle::store_item_name(entry));
  CHECK(inventory_of_bundle(sent.folder, *pinned_root(workshop).state.pinned) == inventory);
  write_file(workshop.dir / "site.inventory", bundle::write_inventory(inventory));

  workshop.lock.version = 2;
  workshop.add_wheel({.name = "more", .files = {{"more/__init__.py", "MORE = 1\n"}}});
  const CreateResult asked = workshop.pack("asked", 0, workshop.dir / "site.inventory");
  const CreateResult kept = workshop.pack("kept", 0, sent.folder);
  CHECK(kept.manifest.base == bundle::inventory_digest(inventory));
  CHECK(std::count_if(kept.manifest.entries.begin(), kept.manifest.entries.end(),
                      [](const bundle::Entry& entry) { return !entry.absent; }) == 1);
  CHECK(files_of(kept.folder) == files_of(asked.folder));

  // Seal and chunk list are enough to keep, and a delta is a base as well.
  fs::create_directories(workshop.dir / "shelf");
  for (const fs::directory_entry& file : fs::directory_iterator(sent.folder))
    if (file.path().extension() == ".seal" || file.path().extension() == ".chunks")
      fs::copy(file.path(), workshop.dir / "shelf");
  CHECK(files_of(workshop.pack("by-seal", 0, workshop.dir / "shelf/demo-1.seal").folder) == files_of(asked.folder));
  workshop.lock.version = 3;
  const CreateResult third = workshop.pack("third", 0, kept.folder);
  CHECK(std::all_of(third.manifest.entries.begin(), third.manifest.entries.end(),
                    [](const bundle::Entry& entry) { return entry.absent; }));
}

TEST_CASE("a wheel that changed travels as a patch on the one that was sent, and the next delta builds on that") {
  Workshop workshop;
  const std::size_t size = 300'000;
  workshop.add_wheel(test::with_library(size));
  const CreateResult sent = workshop.pack("sent");
  const auto next = [&](const TinyWheel& wheel) {
    ++workshop.lock.version;
    workshop.lock.wheels.pop_back();
    workshop.add_wheel(wheel);
  };
  next(test::with_changed_library(size));
  const fs::path path = "wheels/" + test::with_changed_library(size).file_name();
  const auto entry_of = [](const CreateResult& result, const fs::path& name) {
    return *result.manifest.find(bundle::SafePath::parse(name.string(), ""));
  };
  const bundle::Entry older = entry_of(sent, "wheels/" + test::with_library().file_name());
  const CreateResult whole = workshop.pack("whole", 0, sent.folder);
  const CreateResult delta = workshop.pack("delta", 0, sent.folder, nullptr, true);
  const bundle::Entry patch = entry_of(delta, path);
  CHECK(patch.encoding == bundle::Encoding::Patch);
  CHECK(patch.base == older.content);
  CHECK(patch.sha256 == entry_of(whole, path).sha256);
  CHECK(patch.stored_size < 4000);
  CHECK(delta.manifest.payload.size < 20'000);
  CHECK(whole.manifest.payload.size > size);
  CHECK(delta.manifest.installer_level == 5);
  CHECK(files_of(workshop.pack("again", 0, sent.folder, nullptr, true).folder) == files_of(delta.folder));
  const bundle::VerifiedBundle verified =
      bundle::verify(bundle::open(delta.folder), pinned_root(workshop), bundle::system_time());
  CHECK(bundle::check_every_chunk(verified, 1).empty());
  for (const fs::directory_entry& left : fs::directory_iterator(workshop.cache()))
    CHECK(left.path().string().find("patches") == std::string::npos);

  // Unchanged, it is left out under the patch's name; changed again, it is a patch on the patch.
  ++workshop.lock.version;
  const bundle::Entry same = entry_of(workshop.pack("same", 0, delta.folder), path);
  CHECK(same.absent);
  CHECK(same.content == patch.content);
  next(test::with_changed_library(size, "1.2"));
  const bundle::Entry third = entry_of(workshop.pack("third", 0, delta.folder, nullptr, true),
                                       "wheels/" + test::with_changed_library(size, "1.2").file_name());
  CHECK(third.encoding == bundle::Encoding::Patch);
  CHECK(third.base == patch.content);

  // Without the wheel that was sent there is nothing to make a patch of: it is carried whole.
  fs::remove(Cache(workshop.cache()).path(patch.sha256));
  const CreateResult fallback = workshop.pack("fallback", 0, delta.folder, nullptr, true);
  CHECK(entry_of(fallback, "wheels/" + test::with_changed_library(size, "1.2").file_name()).encoding ==
        bundle::Encoding::Identity);
}

TEST_CASE("patches need the bundle that was sent, and a wheel that has little in common with it is carried whole") {
  Workshop workshop;
  CHECK_REFUSED(workshop.pack("bad", 0, {}, nullptr, true), Usage, "--base");
  const fs::path file = workshop.dir / "site.inventory";
  write_file(file, bundle::write_inventory({.generations = {}, .items = {std::string(64, '0')}}));
  CHECK_REFUSED(workshop.pack("bad", 0, file, nullptr, true), Usage, "an inventory");
  workshop.add_wheel({.name = "other", .files = {{"other.py", "A = '" + test::noise(3000) + "'\n"}}});
  const CreateResult sent = workshop.pack("sent");
  ++workshop.lock.version;
  workshop.lock.wheels.pop_back();
  workshop.add_wheel({.name = "other", .version = "2.0", .files = {{"new.py", test::noise(9000).substr(4000)}}});
  const CreateResult delta = workshop.pack("delta", 0, sent.folder, nullptr, true);
  CHECK(delta.manifest.find(bundle::SafePath::parse("wheels/other-2.0-py3-none-any.whl", ""))->encoding ==
        bundle::Encoding::Identity);
  CHECK(delta.manifest.installer_level == 2);
}

TEST_CASE("a base bundle is verified by the roots that travel along, and may be signed under an older one of them") {
  Workshop workshop;
  const CreateResult sent = workshop.pack("sent");
  workshop.lock.version = 2;
  const fs::path chunks = sent.folder / "demo-1.chunks";
  const std::string list = read_file(chunks);
  std::string changed = list;
  changed[0] ^= 1;
  fs::remove(chunks), write_file(chunks, changed);
  CHECK_REFUSED(workshop.pack("bad", 0, sent.folder), Digest, "chunk list");
  fs::remove(chunks);
  CHECK_REFUSED(workshop.pack("bad", 0, sent.folder), Missing, "demo-1.chunks");
  write_file(chunks, list);

  const Workshop stranger;
  bundle::Seal seal = bundle::open(sent.folder).seal;
  const auto seal_as = [&](const bundle::Seal& other) {
    fs::remove(sent.folder / "demo-1.seal");
    write_file(sent.folder / "demo-1.seal", bundle::write_seal(other));
  };
  seal_as({.roots = {one_key_root(stranger.key)},
           .manifest = signed_document(seal.manifest.payload, {&stranger.key}, bundle::kBundlePayloadType)});
  CHECK_REFUSED(workshop.pack("bad", 0, sent.folder), Signature, "root");
  seal_as({.roots = seal.roots,
           .manifest = signed_document(seal.manifest.payload, {&stranger.key}, bundle::kBundlePayloadType)});
  CHECK_REFUSED(workshop.pack("bad", 0, sent.folder), Signature, "release");
  CHECK_FALSE(fs::exists(workshop.dir / "bad"));
  seal_as(seal);

  const bundle::PrivateKey fresh = bundle::PrivateKey::generate();
  bundle::Root next = next_root(bundle::parse_root(seal.roots[0].payload, ""));
  next.roles["release"].keys.clear();
  add_key(next, "release", fresh.public_key());
  write_file(workshop.dir / "root.2.json", write_envelope(signed_root(next, {&workshop.key})));
  bundle::write_text(workshop.dir / "fresh.key", fresh.pem(), 0600);
  workshop.pack("unused");
  bundle::Progress progress(nullptr);
  const CreateResult delta = create({.lock = workshop.dir / "demo.lock.toml",
                                     .roots = {workshop.dir / "root.1.json", workshop.dir / "root.2.json"},
                                     .keys = {workshop.dir / "fresh.key"},
                                     .out = workshop.dir / "rotated",
                                     .cache = workshop.cache(),
                                     .installer = workshop.dir / "sealift-install",
                                     .base = sent.folder,
                                     .fetch = {.jobs = 2}},
                                    progress);
  CHECK(delta.manifest.base);
}

TEST_CASE("an inventory that has nothing of the bundle makes no delta, and a damaged one no bundle") {
  Workshop workshop;
  const fs::path file = workshop.dir / "site.inventory";
  write_file(file, bundle::write_inventory({.generations = {}, .items = {std::string(64, '0')}}));
  const bundle::Manifest manifest = workshop.pack("whole", 0, file).manifest;
  CHECK_FALSE(manifest.base);
  CHECK(manifest.installer_level == 1);
  std::string text = read_file(file);
  text[text.find("000") + 1] = '1';
  write_file(file, text);
  CHECK_REFUSED(workshop.pack("bad", 0, file), Digest, "changed on its way");
  CHECK_REFUSED(workshop.pack("bad", 0, workshop.dir / "none"), Missing, "none");
  CHECK_FALSE(fs::exists(workshop.dir / "bad"));
}

TEST_CASE("a wheel that could not be installed is refused before anything is written") {
  Workshop workshop;
  workshop.add_wheel({.name = "liar", .files = {{"liar.py", ""}}, .unrecorded = {"liar.py"}});
  CHECK_REFUSED(workshop.pack(), Format, "liar.py");
  CHECK_FALSE(fs::exists(workshop.dir / "out"));
}

TEST_CASE("all wheels that could not be installed are told in one message, each with what to do") {
  Workshop workshop;
  const std::string line = "import sys; sys.flags\n";
  workshop.add_wheel({.name = "liar", .files = {{"liar.py", ""}}, .unrecorded = {"liar.py"}});
  workshop.add_wheel({.name = "my_dsl", .files = {{"my_dsl.pth", line}}});
  const bundle::Error error = test::refusal([&] { workshop.pack(); });
  INFO(error.what());
  CHECK(error.code() == bundle::ErrorCode::Format);
  CHECK(test::mentions(error, "2 wheels are not acceptable"));
  CHECK(test::mentions(error, "liar-1.0-py3-none-any.whl"));
  CHECK(test::mentions(error,
                       "package = \"my-dsl\"\n            sha256 = \"" + bundle::sha256(bundle::as_bytes(line)).hex()));
  CHECK(test::mentions(error, "excludes = [\"my-dsl\"]"));
}

TEST_CASE("a library that a program expects from a wheel must be in one") {
  Workshop workshop;
  workshop.lock.programs[0].from_wheels = {"libdemo.so"};
  workshop.pack("one");
  workshop.lock.programs[0].from_wheels = {"libother.so"};
  CHECK_REFUSED(workshop.pack("two"), Missing, "libother.so");
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

TEST_CASE("inspect shows a bundle without trusting it, and says so") {
  Workshop workshop;
  const CreateResult result = workshop.pack();
  const InspectReport report = inspect(result.folder, std::nullopt);
  CHECK_FALSE(report.trusted);
  bundle::Manifest written = result.manifest;
  for (bundle::Entry& entry : written.entries) entry.content = {};  // which the chunk list says, and nobody read here
  CHECK(report.manifest == written);
  CHECK(report.signers == result.signers);
  CHECK(report.roots.size() == 1);
  const std::string text = inspect_text(report);
  CHECK(text.find("UNVERIFIED") != std::string::npos);
  CHECK(text.find("wheels/demo-1.0-py3-none-any.whl") != std::string::npos);
  CHECK(inspect_json(report)["trusted"] == false);
}

TEST_CASE("inspect with a fingerprint accepts that root's bundle and no other") {
  Workshop workshop;
  const CreateResult result = workshop.pack();
  const InspectReport report = inspect(result.folder, pinned_root(workshop).state.pinned);
  CHECK(report.trusted);
  CHECK(inspect_text(report).find("UNVERIFIED") == std::string::npos);
  CHECK_REFUSED(inspect(result.folder, bundle::Digest{}), Signature, "not among the bundle's roots");
}

TEST_CASE("inspect refuses a seal that was changed, even without a fingerprint") {
  Workshop workshop;
  const CreateResult result = workshop.pack();
  bundle::Seal seal = bundle::parse_seal(read_file(result.folder / "demo-1.seal"), "seal");
  std::string& manifest = seal.manifest.payload;
  manifest.replace(manifest.find("\"test\""), 6, "\"best\"");
  write_file(result.folder / "demo-1.seal", bundle::write_seal(seal));
  CHECK_REFUSED(inspect(result.folder, std::nullopt), Signature, "does not hold");
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
