// SPDX-License-Identifier: Apache-2.0
// The gate: a good bundle passes, and every way of damaging or swapping one is refused with the right words.
#include "sealift/bundle/verified_bundle.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <map>

#include "bundle/core/json.hpp"
#include "bundle/payload/left_by_systems.hpp"
#include "tests/support/bit_step.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

std::string big_text() {
  std::string text;
  for (int i = 0; i < 6000; ++i) text += std::to_string(i * 2654435761u) + "\n";
  return text;
}

TinyBundle two_volumes() {
  TinyBundle tiny{.volume_size = 16384};
  tiny.items.push_back({.path = "programs/data", .bytes = big_text(), .into = "share/data"});
  tiny.items.push_back(
      {.path = "programs/packed", .bytes = big_text(), .into = "share/packed", .encoding = Encoding::Zstd});
  return tiny;
}

// What an operator's `verify` does: the gate, then every chunk.
void verify_fully(const MadeBundle& made) {
  const VerifiedBundle bundle = verify(open(made.folder), made.trusted, kNow);
  for (const Error& error : check_every_chunk(bundle, 2)) throw error;
}

void flip(const fs::path& path, std::size_t bit) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(bit / 8));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(bit / 8)).put(static_cast<char>(byte ^ (1 << bit % 8)));
}

}  // namespace

TEST_CASE("a bundle that was written verifies, and its entries read back decoded") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "b", two_volumes());
  const VerifiedBundle bundle = verify(open(made.folder), made.trusted, kNow);
  CHECK(bundle.manifest() == made.manifest);
  CHECK(bundle.root_name() == RootName{.version = 1, .fingerprint = *made.trusted.state.pinned});
  CHECK(bundle.signers().size() == 1);
  CHECK(bundle.warnings().empty());
  CHECK(bundle.identity() == sha256(as_bytes(write_manifest(made.manifest))));
  CHECK(check_every_chunk(bundle, 3).empty());
  for (const char* path : {"programs/data", "programs/packed"}) {
    std::string text;
    bundle.stream(*bundle.manifest().find(SafePath::parse(path, "")),
                  [&](ByteView piece) { text.append(as_text(piece)); });
    CHECK(text == big_text());
  }
  const Entry& packed = *bundle.manifest().find(SafePath::parse("programs/packed", ""));
  CHECK(packed.stored_size < packed.size);
}

TEST_CASE("a bundle is found by its folder or by its seal, and two seals in one folder are refused") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "b");
  CHECK(open(made.seal()).seal_path == open(made.folder).seal_path);
  CHECK_REFUSED(open(dir / "nowhere"), Missing, "nowhere");
  CHECK_REFUSED(open(dir.path()), Missing, "no seal");
  write_file(dir / "DEMO-1.SEAL", "");
  CHECK_REFUSED(open(dir.path()), Missing, "in upper case");
  std::filesystem::remove(dir / "DEMO-1.SEAL");
  for (const auto& row : std::map<std::string, std::string>{
           {"demo-1.seal;1", "with what discs add"}, {"DEMO-1.SEA", "cut to eight letters"}, {"x.zip", "unpack it"}}) {
    const std::string &name = row.first, &words = row.second;  // older clang captures no structured binding
    const TempDir other;
    write_file(other / name, "");
    CHECK_REFUSED(open(other.path()), Missing, words);
    CHECK_REFUSED(open(other / name), Missing, words);
  }
  const TempDir outer;
  std::filesystem::copy(made.folder, outer / "inner");
  CHECK_REFUSED(open(outer.path()), Missing, "name that folder: " + (outer / "inner").string());
  CHECK_REFUSED(open(made.chunks()), Missing, "name its folder: " + made.folder.string());
  write_file(made.folder / "other-1.seal", "x");
  CHECK_REFUSED(open(made.folder), Conflict, "more than one seal");
}

TEST_CASE("what systems leave beside a bundle is passed over, and second copies are named, all in one message") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "b");
  for (const char* name :
       {"._tiny-1.seal", "._tiny-1.chunks", "._tiny-1.vol001", ".DS_Store", "Thumbs.db", "desktop.ini"})
    write_file(made.folder / name, "x");
  verify(open(made.folder), made.trusted, kNow);
  for (const char* name : {"tiny-1 (1).vol001", "tiny-1 - Copy.chunks", "other-1.vol001"})
    write_file(made.folder / name, "x");
  for (const char* words : {"3 files", "tiny-1 (1).vol001 (a second copy of tiny-1.vol001)", "other-1.vol001, ",
                            "tiny-1 - Copy.chunks (a second copy of tiny-1.chunks)"})
    CHECK_REFUSED(verify(open(made.folder), made.trusted, kNow), Conflict, words);
  write_file(made.folder / "tiny-1(2).seal", "x");
  CHECK_REFUSED(open(made.folder), Conflict, "move tiny-1(2).seal away");
  std::filesystem::rename(made.folder, dir / "outer");
  CHECK_REFUSED(open(dir.path()), Missing, "name that folder");
}

TEST_CASE("the name of a second copy is told from others") {
  for (const char* name : {"a-1 (1).vol001", "a-1(12).vol001", "a-1 - Copy.vol001", "a-1 - Copy (2).vol001",
                           "a-1 copy.vol001", "a-1 copy 2.vol001", "a-1 - \xe5\x89\xaf\xe6\x9c\xac.vol001"})
    CHECK_MESSAGE(original_name(name) == "a-1.vol001", name);
  for (const char* name : {"a-1.vol001", "a-1 ().vol001", "(1).vol001", "a-1 (x).vol001", "a-1 copying.vol001", "a"})
    CHECK_MESSAGE(!original_name(name), name);
}

TEST_CASE("a file of a bundle that a disc has renamed is missing, and the message has both names and the way back") {
  for (const auto& row : std::map<std::string, std::string>{{"TINY-1.CHUNKS", "in another case"},
                                                            {"tiny-1.chunks;1", "in another case"},
                                                            {"TINY-1.CHU", "cut to eight letters"},
                                                            {"TINY-1~1.CHU", "cut to eight letters"}}) {
    const std::string &now = row.first, &words = row.second;
    const TempDir dir;
    const MadeBundle made = make_bundle(dir / "b");
    REQUIRE(made.chunks().filename() == "tiny-1.chunks");
    std::filesystem::rename(made.chunks(), made.folder / now);
    CHECK_REFUSED(verify(open(made.seal()), made.trusted, kNow), Missing, words);
    CHECK_REFUSED(verify(open(made.seal()), made.trusted, kNow), Missing, "mv '" + now + "' 'tiny-1.chunks'");
  }
  {
    const TempDir dir;  // of a stranger's medium: no part of a line to paste
    const MadeBundle made = make_bundle(dir / "b");
    std::filesystem::rename(made.chunks(), made.folder / "';TIN~1.CHU");
    const Error error = refusal([&] { verify(open(made.seal()), made.trusted, kNow); });
    CHECK(std::string(error.what()).find("TIN~1") == std::string::npos);
  }
  for (const std::string now : {"TINY-1.VOL001", "tiny-1.vol001;1", "TINY-1.VOL", "tiny-1 (1).vol001"}) {
    const TempDir dir;
    const MadeBundle made = make_bundle(dir / "b");
    std::filesystem::rename(made.volume(0), made.folder / now);
    CHECK_REFUSED(verify(open(made.folder), made.trusted, kNow), Missing, "mv '" + now + "' 'tiny-1.vol001'");
  }
}

TEST_CASE("the payload is an archive that stock tar lists and unpacks") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "b", two_volumes());
  REQUIRE(made.manifest.payload.volumes.size() > 1);
  const std::string command = "cd '" + made.folder.string() +
                              "' && cat *.vol* | tar xf - && cat oci-layout && sha256sum blobs/sha256/* | awk '{ if "
                              "($2 != \"blobs/sha256/\" $1) exit 1 }'";
  CHECK(std::system((command + " > /dev/null").c_str()) == 0);
  const Entry& wheel = made.manifest.entries.back();
  CHECK(read_file(made.folder / ("blobs/sha256/" + wheel.stored_sha256.hex())) == make_wheel({}));
  const Json index = Json::parse(read_file(made.folder / "index.json"));
  const std::string image =
      read_file(made.folder / ("blobs/sha256/" + index["manifests"][0]["digest"].get<std::string>().substr(7)));
  CHECK(Json::parse(image)["layers"].size() == made.manifest.entries.size());
}

TEST_CASE("the same entries, key and date give the same bytes") {
  const TempDir dir;
  const PrivateKey key = PrivateKey::generate();
  const MadeBundle one = make_bundle(dir / "one", two_volumes(), key),
                   two = make_bundle(dir / "two", two_volumes(), key);
  for (const auto& file : fs::directory_iterator(one.folder))
    CHECK(read_file(file.path()) == read_file(two.folder / file.path().filename()));
  CHECK(read_file(one.seal()) == read_file(two.seal()));
}

TEST_CASE("equal bytes are stored once") {
  const TempDir dir;
  TinyBundle tiny;
  tiny.items = {{.path = "a", .bytes = "same", .into = "a"}, {.path = "b", .bytes = "same", .into = "b"}};
  const MadeBundle made = make_bundle(dir / "b", tiny);
  CHECK(made.manifest.entries[0].offset == made.manifest.entries[1].offset);
  CHECK_NOTHROW(verify_fully(made));
}

TEST_CASE("every flipped bit of the seal is refused") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "b", {.items = {{.path = "a", .bytes = "x", .into = "a"}}});
  const std::size_t bits = fs::file_size(made.seal()) * 8;
  for (std::size_t bit = 0; bit < bits; bit += kBitStep) {
    flip(made.seal(), bit);
    CAPTURE(bit);
    CHECK_THROWS_AS(verify(open(made.folder), made.trusted, kNow), Error);
    flip(made.seal(), bit);
  }
  CHECK_NOTHROW(verify_fully(made));
}

TEST_CASE("every flipped bit of the chunk list is refused, naming the list") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "b", two_volumes());
  for (std::size_t bit = 0; bit < fs::file_size(made.chunks()) * 8; bit += kBitStep) {
    flip(made.chunks(), bit);
    CAPTURE(bit);
    CHECK_REFUSED(verify(open(made.folder), made.trusted, kNow), Digest, ".chunks");
    flip(made.chunks(), bit);
  }
}

TEST_CASE("ten thousand flipped bits of the volumes are all found, in the right volume and chunk") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "b", two_volumes());
  std::uint64_t state = 42;
  const VerifiedBundle bundle = verify(open(made.folder), made.trusted, kNow);  // its volumes are changed in place
  for (int round = 0; round < 10'000; ++round) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::size_t index = (state >> 33) % made.manifest.payload.volumes.size();
    const std::size_t bit = (state >> 20) % (made.manifest.payload.volumes[index].size * 8);
    flip(made.volume(index), bit);
    const std::vector<Error> errors = check_every_chunk(bundle, 1);
    REQUIRE(errors.size() == 1);
    CHECK(mentions(errors[0], place_of_chunk(made, index, bit / 8)));
    flip(made.volume(index), bit);
  }
  CHECK_NOTHROW(verify_fully(made));
}

TEST_CASE("a block of 4 KiB that became zeros or another block is found wherever it is, and nothing else is blamed") {
  const TempDir dir;
  TinyBundle tiny = two_volumes();
  tiny.chunk_size = 8192;
  const MadeBundle made = make_bundle(dir / "b", tiny);
  const std::string previous_of_first(4096, 'x');
  for (std::size_t i = 0; i < made.manifest.payload.volumes.size(); ++i) {
    const std::string good = read_file(made.volume(i));
    for (std::size_t at = 0; at < good.size(); at += 4096) {
      const std::size_t size = std::min<std::size_t>(4096, good.size() - at);
      const std::string duplicate = at == 0 ? previous_of_first : good.substr(at - 4096, 4096);
      for (const std::string& block : {std::string(4096, '\0'), duplicate}) {
        if (good.compare(at, size, block, 0, size) == 0) continue;
        write_file(made.volume(i), std::string(good).replace(at, size, block.substr(0, size)));
        const std::vector<Error> errors = check_every_chunk(verify(open(made.folder), made.trusted, kNow), 1);
        std::vector<std::string> hit;  // the block may lie across the end of a chunk
        for (std::size_t byte = at; byte < at + size; ++byte)
          if (const std::string place = place_of_chunk(made, i, byte);
              good[byte] != block[byte - at] && (hit.empty() || hit.back() != place))
            hit.push_back(place);
        REQUIRE(errors.size() == hit.size());
        for (std::size_t k = 0; k < hit.size(); ++k) {
          CHECK(errors[k].code() == ErrorCode::Digest);
          CHECK(mentions(errors[k], hit[k]));
        }
      }
    }
    write_file(made.volume(i), good);
  }
  CHECK_NOTHROW(verify_fully(made));
}

TEST_CASE("a volume of an older, valid bundle is found, and every chunk of it that differs is named") {
  const TempDir dir;
  const PrivateKey key = PrivateKey::generate();
  TinyBundle older = two_volumes(), newer = two_volumes();
  for (char& c : older.items[1].bytes) c = c == '1' ? '7' : c;
  newer.version = 2;
  const MadeBundle old = make_bundle(dir / "old", older, key), made = make_bundle(dir / "new", newer, key);
  CHECK_NOTHROW(verify_fully(old));
  REQUIRE(fs::file_size(old.volume(1)) == fs::file_size(made.volume(1)));
  const std::string before = read_file(old.volume(1)), now = read_file(made.volume(1));
  std::vector<std::string> differing;
  for (std::size_t byte = 0; byte < now.size(); ++byte)
    if (before[byte] != now[byte])
      if (const std::string place = place_of_chunk(made, 1, byte); differing.empty() || differing.back() != place)
        differing.push_back(place);
  fs::copy_file(old.volume(1), made.volume(1), fs::copy_options::overwrite_existing);
  const std::vector<Error> errors = check_every_chunk(verify(open(made.folder), made.trusted, kNow), 2);
  REQUIRE(differing.size() > 2);
  REQUIRE(errors.size() == differing.size());
  for (std::size_t i = 0; i < errors.size(); ++i) CHECK(mentions(errors[i], differing[i]));
}

TEST_CASE("a thousand checks of a good bundle raise no alarm") {
  const TempDir dir;
  TinyBundle tiny = two_volumes();
  tiny.items.pop_back();
  for (const DigestAlgorithm digest : {DigestAlgorithm::Sha256, DigestAlgorithm::Sm3}) {
    tiny.digest = digest;
    const MadeBundle made = make_bundle(dir / name_of(digest), tiny);
    for (unsigned round = 0; round < 500; ++round)
      REQUIRE(check_every_chunk(verify(open(made.folder), made.trusted, kNow), 1 + round % 3).empty());
  }
}

TEST_CASE("chunks digested with SM3 are checked with SM3, and the messages say so") {
  const TempDir dir;
  TinyBundle tiny = two_volumes();
  tiny.digest = DigestAlgorithm::Sm3;
  const MadeBundle made = make_bundle(dir / "b", tiny);
  CHECK(made.manifest.payload.digest == DigestAlgorithm::Sm3);
  CHECK_NOTHROW(verify_fully(made));
  const std::string list = read_file(made.chunks()), volume = read_file(made.volume(0));
  CHECK(made.manifest.payload.chunk_list_digest == digest_of(as_bytes(list), DigestAlgorithm::Sm3));
  CHECK(list.substr(0, 32) == as_text(digest_of(as_bytes(volume).first(4096), DigestAlgorithm::Sm3).bytes));
  flip(made.volume(0), 7);
  CHECK_REFUSED(verify_fully(made), Digest, "expected: sm3 ");
  flip(made.volume(0), 7);
  flip(made.chunks(), 7);
  CHECK_REFUSED(verify_fully(made), Digest, "expected: sm3 ");
  // A list of SHA-256 digests beside a seal that says SM3 does not do.
  fs::remove(made.chunks());
  fs::copy_file(make_bundle(dir / "c", two_volumes()).chunks(), made.chunks());
  CHECK_REFUSED(verify_fully(made), Digest, ".chunks");
}

TEST_CASE("all damaged chunks are reported, in order") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "b", two_volumes());
  flip(made.volume(1), 8 * 5000);
  flip(made.volume(0), 8);
  const std::vector<Error> errors = check_every_chunk(verify(open(made.folder), made.trusted, kNow), 4);
  REQUIRE(errors.size() == 2);
  CHECK(mentions(errors[0], "vol001 at offset 0"));
  CHECK(mentions(errors[1], place_of_chunk(made, 1, 5000)));
}

TEST_CASE("a missing, cut, extra or swapped volume is refused by name") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "b", two_volumes());
  REQUIRE(made.manifest.payload.volumes.size() >= 3);
  SUBCASE("missing") {
    fs::remove(made.volume(1));
    CHECK_REFUSED(verify_fully(made), Missing, "vol002");
  }
  SUBCASE("cut") {
    fs::resize_file(made.volume(1), 100);
    CHECK_REFUSED(verify_fully(made), Digest, "vol002");
  }
  SUBCASE("grown") {
    fs::resize_file(made.volume(1), made.manifest.payload.volumes[1].size + 1);
    CHECK_REFUSED(verify_fully(made), Digest, "vol002");
  }
  SUBCASE("extra") {
    fs::copy_file(made.volume(0), made.folder / "tiny-1.vol099");
    CHECK_REFUSED(verify_fully(made), Conflict, "tiny-1.vol099");
  }
  SUBCASE("of another bundle") {
    fs::copy_file(made.volume(0), made.folder / "other-7.vol001");
    CHECK_REFUSED(verify_fully(made), Conflict, "other-7.vol001");
  }
  SUBCASE("swapped") {
    fs::rename(made.volume(0), made.folder / "swap");
    fs::rename(made.volume(1), made.volume(0));
    fs::rename(made.folder / "swap", made.volume(1));
    CHECK_REFUSED(verify_fully(made), Digest, "vol001");
  }
  SUBCASE("the chunk list missing") {
    fs::remove(made.chunks());
    CHECK_REFUSED(verify_fully(made), Missing, ".chunks");
  }
  SUBCASE("empty") {
    fs::resize_file(made.volume(1), 0);
    CHECK_REFUSED(verify_fully(made), Digest, "vol002");
  }
  SUBCASE("a device") {
    fs::remove(made.volume(1));
    if (::mknod(made.volume(1).c_str(), S_IFCHR | 0600, makedev(1, 5)) == 0)  // /dev/zero, where we may
      CHECK_REFUSED(verify_fully(made), Format, "device");
  }
  SUBCASE("the chunk list of one chunk more") {
    write_file(made.chunks(), read_file(made.chunks()) + std::string(32, 'x'));
    CHECK_REFUSED(verify_fully(made), Digest, ".chunks");
  }
  SUBCASE("the chunk list of one chunk less") {
    fs::resize_file(made.chunks(), fs::file_size(made.chunks()) - 32);
    CHECK_REFUSED(verify_fully(made), Digest, ".chunks");
  }
  SUBCASE("the chunk list in another order") {
    const std::string list = read_file(made.chunks());
    write_file(made.chunks(), list.substr(32, 32) + list.substr(0, 32) + list.substr(64));
    CHECK_REFUSED(verify_fully(made), Digest, ".chunks");
  }
  SUBCASE("the chunk list a pipe") {
    fs::remove(made.chunks());
    REQUIRE(::mkfifo(made.chunks().c_str(), 0600) == 0);
    CHECK_REFUSED(verify_fully(made), Format, ".chunks");
  }
  SUBCASE("the chunk list cut") {
    fs::resize_file(made.chunks(), 31);
    CHECK_REFUSED(verify_fully(made), Digest, ".chunks");
  }
}

TEST_CASE("the seal of another version does not open this bundle's volumes") {
  const TempDir dir;
  const PrivateKey key = PrivateKey::generate();
  const MadeBundle made = make_bundle(dir / "b", two_volumes(), key);
  const MadeBundle other = make_bundle(dir / "c", {.version = 2}, key);
  fs::copy_file(other.seal(), made.seal(), fs::copy_options::overwrite_existing);
  CHECK_REFUSED(verify_fully(made), Conflict, "not named as the bundle");
  fs::remove(made.seal());
  fs::copy_file(other.seal(), made.folder / other.seal().filename());
  CHECK_REFUSED(verify_fully(made), Conflict, "tiny-1.");
}

TEST_CASE("a wheel that was built outside of a sandbox is warned of, and refused where that is asked for") {
  const TempDir dir;
  const auto made_as = [&](const char* name, WheelBuild build, bool absent = false) {
    TinyBundle tiny;
    tiny.items[0].build = build;
    tiny.items[0].absent = absent;
    if (absent) tiny.items.push_back(wheel_item({.name = "other"}));
    return make_bundle(dir / name, tiny);
  };
  const auto strictly = [](const MadeBundle& made) {
    Trust trust = made.trusted;
    trust.sandboxed_builds_only = true;
    return verify(open(made.folder), trust, kNow);
  };
  for (const WheelBuild build : {WheelBuild::None, WheelBuild::Sandboxed}) {
    const MadeBundle made = made_as(build == WheelBuild::None ? "published" : "sandboxed", build);
    CHECK(strictly(made).warnings().empty());
    CHECK(strictly(made).manifest().entries[0].build == build);
  }
  const MadeBundle made = made_as("unsandboxed", WheelBuild::Unsandboxed);
  CHECK(made.manifest.installer_level == 6);
  const VerifiedBundle verified = verify(open(made.folder), made.trusted, kNow);
  REQUIRE(verified.warnings().size() == 1);
  CHECK(verified.warnings()[0].find("outside of a sandbox") != std::string::npos);
  CHECK(verified.warnings()[0].find("demo-1.0-py3-none-any.whl") != std::string::npos);
  CHECK_REFUSED(strictly(made), Conflict, "demo-1.0-py3-none-any.whl");
  // What a delta leaves to the store, too: the manifest says it of the wheel, carried or not.
  CHECK_REFUSED(strictly(made_as("delta", WheelBuild::Unsandboxed, true)), Conflict, "built outside of a sandbox");
}

TEST_CASE("another key's bundle is refused even when everything else is right") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "b");
  const Trust stranger = pinned(one_key_root(PrivateKey::generate()));
  CHECK_REFUSED(verify(open(made.folder), stranger, kNow), Signature, made.fingerprint());
  CHECK_REFUSED(verify(open(made.folder), {}, kNow), Signature, "no root is pinned");
}

TEST_CASE("a program beside the bundle may be absent but not another one") {
  const TempDir dir;
  const PrivateKey key = PrivateKey::generate();
  MadeBundle made = make_bundle(dir / "b", {}, key);
  made.manifest.companions = {{.name = "sealift-install", .size = 4, .sha256 = sha256(as_bytes("tool"))}};
  reseal(made, {one_key_root(key)}, {&key});
  CHECK_NOTHROW(verify_fully(made));
  write_file(made.folder / "sealift-install", "tool");
  CHECK_NOTHROW(verify_fully(made));
  write_file(made.folder / "sealift-install", "evil");
  CHECK_REFUSED(verify_fully(made), Digest, "sealift-install");
  write_file(made.folder / "sealift-install", "tool and more");
  CHECK_REFUSED(verify_fully(made), Digest, "13 bytes");
}

TEST_CASE("an input that is not the locked one is not packed") {
  const TempDir dir;
  Manifest draft{.name = "x", .channel = "c", .version = 1};
  BundleWriter writer(dir.path(), draft, 0);
  for (const Encoding encoding : {Encoding::Identity, Encoding::Zstd}) {
    MemorySource source(Bytes(10), "the-input");
    const Entry entry{
        .path = SafePath::parse("a", ""), .size = 10, .sha256 = sha256(as_bytes("other")), .encoding = encoding};
    CHECK_REFUSED(writer.add(entry, source), Digest, "the-input");
  }
}
