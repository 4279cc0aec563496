// SPDX-License-Identifier: Apache-2.0
// Bundles that carry their environment as one image: made by the real sealift-install, the same bytes each time.
#include "packager/pack/environment_image.hpp"

#include <doctest/doctest.h>

#include "packager/compare/inspect.hpp"
#include "packager/host/own_program.hpp"
#include "packager/host/process.hpp"
#include "packager/pack/rehearse.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/verified_bundle.hpp"
#include "tests/packager/workshop.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::packager;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

// Whose job asks for an image, with the sealift-install that makes it.
struct ImageWorkshop : Workshop {
  ImageWorkshop() {
    fs::copy_file(SEALIFT_INSTALL, dir / "sealift-install", fs::copy_options::overwrite_existing);
    lock.target.arch = machine_arch();
    lock.squashfs.emplace();
  }
  void installer(const std::string& script) {
    fs::remove(dir / "sealift-install");
    write_file(dir / "sealift-install", "#!/bin/sh\n" + script);
    fs::permissions(dir / "sealift-install", fs::perms(0755));
  }
  ProcessResult site(std::vector<std::string> words) const {
    words.insert(words.begin(), SEALIFT_INSTALL);
    return run_process(words);
  }
  std::string said(const std::string& out, const fs::path& base = {}) {
    std::FILE* const stream = std::fopen((dir / "said").c_str(), "w");
    pack(out, 0, base, stream);
    std::fclose(stream);
    return read_file(dir / "said");
  }
};

std::string bytes_of(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry) {
  std::string bytes;
  bundle.stream(entry, [&](bundle::ByteView piece) { bytes += bundle::as_text(piece); });
  return bytes;
}

}  // namespace

TEST_CASE("a job's image is what sealift-install makes of the bundle without it, and equal locks give equal bytes") {
  ImageWorkshop workshop;
  const std::string said = workshop.said("one");
  const fs::path folder = workshop.dir / "one/demo-1";
  const bundle::VerifiedBundle verified =
      bundle::verify(bundle::open(folder), pinned_root(workshop), bundle::system_time());
  CHECK(bundle::check_every_chunk(verified, 2).empty());
  const bundle::Manifest& manifest = verified.manifest();
  CHECK(manifest.installer_level == 8);
  CHECK(manifest.entries.size() == 4);
  REQUIRE(manifest.image() != nullptr);
  const bundle::Entry& image = *manifest.image();
  CHECK(image.path.text() == kImageEntry);
  CHECK(manifest.environment.placements.size() == 3);
  CHECK(said.find("(" + std::to_string(image.size) + " bytes)") != std::string::npos);
  workshop.pack("two");
  CHECK(files_of(folder) == files_of(workshop.dir / "two/demo-1"));
  CHECK(fs::is_empty(workshop.cache() / "scratch"));

  workshop.lock.squashfs.reset();
  workshop.pack("plain");
  const std::string fingerprint = bundle::fingerprint_text(*pinned_root(workshop).state.pinned);
  const ProcessResult made = workshop.site({"image", workshop.dir / "plain/demo-1", "--fingerprint", fingerprint, "-o",
                                            workshop.dir / "made", "--verity", "--json"});
  INFO(made.err);
  REQUIRE(made.exit_code == 0);
  CHECK(bytes_of(verified, image) == read_file(workshop.dir / "made"));
  CHECK(made.out.find(image.verity->hex()) != std::string::npos);
  for (const char* way : {"--verity", "--rebuild"}) {
    const fs::path file = workshop.dir / way;
    const ProcessResult copied = workshop.site({"image", folder, "--fingerprint", fingerprint, "-o", file, way});
    INFO(copied.err);
    CHECK(copied.exit_code == 0);
    CHECK(read_file(file) == read_file(workshop.dir / "made"));
  }
}

TEST_CASE("an image is made of what the cache has mended, and a bundle with sm3 or volumes has it, too") {
  ImageWorkshop workshop;
  const CreateResult plain = workshop.pack("plain");
  const fs::path wheel = workshop.cache() / "sha256" / workshop.lock.wheels[0].sha256.hex();
  std::string bytes = read_file(wheel);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file(wheel, bytes);
  fs::remove_all(workshop.cache() / "chunks");
  const CreateResult mended = workshop.pack("mended");
  CHECK(files_of(plain.folder) == files_of(mended.folder));
  workshop.lock.payload_digest = bundle::DigestAlgorithm::Sm3;
  const CreateResult other = workshop.pack("sm3", 3 * bundle::kDefaultChunkSize);
  REQUIRE(other.manifest.image() != nullptr);
  CHECK(other.manifest.image()->sha256 == plain.manifest.image()->sha256);
  CHECK(other.manifest.image()->verity == plain.manifest.image()->verity);
}

TEST_CASE("a delta of a job with an image carries none, and says how a site makes it") {
  ImageWorkshop workshop;
  const CreateResult first = workshop.pack("first");
  workshop.lock.version = 2;
  workshop.add_wheel({.name = "more", .files = {{"more/__init__.py", "MORE = 1\n"}}});
  const std::string said = workshop.said("second", first.folder);
  CHECK(said.find("sealift-install image PREFIX -o FILE") != std::string::npos);
  const bundle::VerifiedBundle delta =
      bundle::verify(bundle::open(workshop.dir / "second/demo-2"), pinned_root(workshop), bundle::system_time());
  CHECK(delta.manifest().base.has_value());
  CHECK(delta.manifest().image() == nullptr);
}

TEST_CASE("without wheels the image is carried alone: what it was made of is listed, rehearsed, and left out") {
  ImageWorkshop workshop;
  const CreateResult with = workshop.pack("with");
  workshop.lock.squashfs->wheels = false;
  std::FILE* const stream = std::fopen((workshop.dir / "said").c_str(), "w");
  bundle::Digest fingerprint{};
  std::size_t carried = 0;
  CreateResult made;
  {
    write_file(workshop.dir / "demo.lock.toml", write_lock(workshop.lock, workshop.dir.path()));
    bundle::Progress progress(stream);
    made = create(
        {.lock = workshop.dir / "demo.lock.toml",
         .roots = {workshop.dir / "root.1.json"},
         .keys = {workshop.dir / "release.key"},
         .out = workshop.dir / "alone",
         .cache = workshop.cache(),
         .installer = workshop.dir / "sealift-install",
         .on_draft =
             [&](const fs::path& folder, const bundle::Digest& root) {
               fingerprint = root;
               CHECK(fs::is_regular_file(folder / "sealift-install"));
               carried =
                   bundle::verify(bundle::open(folder), {.state = {.pinned = root}}, kNow).manifest().entries.size();
             }},
        progress);
  }
  std::fclose(stream);
  CHECK(carried == 3);
  CHECK(fingerprint != bundle::Digest{});
  const bundle::VerifiedBundle verified =
      bundle::verify(bundle::open(made.folder), pinned_root(workshop), bundle::system_time());
  const bundle::Manifest& manifest = verified.manifest();
  CHECK(carries_image_alone(manifest));
  CHECK(bytes_of(verified, *manifest.image()) ==
        bytes_of(bundle::verify(bundle::open(with.folder), pinned_root(workshop), bundle::system_time()),
                 *with.manifest.image()));
  CHECK(manifest.environment == with.manifest.environment);
  for (const bundle::Entry& entry : manifest.entries) {
    CHECK(entry.absent == (entry.kind != bundle::EntryKind::Squashfs));
    const bundle::Entry* const before = with.manifest.find(entry.path);
    REQUIRE(before != nullptr);
    CHECK(before->sha256 == entry.sha256);
    CHECK(before->content == entry.content);
  }
  CHECK(manifest.payload.size < with.manifest.payload.size);
  CHECK(read_file(workshop.dir / "said").find("that are left out") != std::string::npos);
  CHECK(inspect_text(inspect(made.folder, std::nullopt)).find("the image was made of them") != std::string::npos);
  CHECK_REFUSED(workshop.pack("delta", 0, with.folder), Usage, "leave --base out");
  bundle::Progress silent(nullptr);
  CHECK_REFUSED(rehearse({.bundle = made.folder, .fingerprint = *pinned_root(workshop).state.pinned}, silent),
                CannotCheck, "as an image alone");
}

TEST_CASE("the image of a bundle for another machine is made by this machine's sealift-install") {
  ImageWorkshop workshop;
  const CreateResult own = workshop.pack("own");
  workshop.installer("exit 1\n");
  workshop.lock.target.arch = machine_arch() == "x86_64" ? "aarch64" : "x86_64";
  const CreateResult other = workshop.pack("other");
  REQUIRE(other.manifest.image() != nullptr);
  CHECK(other.manifest.image()->sha256 == own.manifest.image()->sha256);
}

TEST_CASE("an installer that makes no image is the refusal, with what it said, and nothing is left") {
  ImageWorkshop workshop;
  const auto refused = [&](const std::string& script, bundle::ErrorCode code, const char* word) {
    workshop.installer(script);
    const bundle::Error error = refusal([&] { workshop.pack("refused"); });
    INFO(error.what());
    CHECK(error.code() == code);
    CHECK(mentions(error, word));
    CHECK(!fs::exists(workshop.dir / "refused/demo-1"));
    CHECK(fs::is_empty(workshop.cache() / "scratch"));
  };
  refused("echo no room here >&2\nexit " + std::to_string(static_cast<int>(bundle::ErrorCode::Space)) + "\n",
          bundle::ErrorCode::Space, "no room here");
  refused("exit 1\n", bundle::ErrorCode::Io, "exit code 0 of sealift-install image");
  refused("echo '{\"root\":null}'\n", bundle::ErrorCode::Format, "no root hash");
}

TEST_CASE("inspect counts the image as what it is") {
  ImageWorkshop workshop;
  const CreateResult made = workshop.pack();
  const std::string text = inspect_text(inspect(made.folder, std::nullopt));
  CHECK(text.find("\nsquashfs   1, ") != std::string::npos);
  CHECK(text.find(kImageEntry) != std::string::npos);
}
