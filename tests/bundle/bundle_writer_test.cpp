// SPDX-License-Identifier: Apache-2.0
// What happens to a bundle that is being written when one of its inputs turns out to be another; and that it is the
// same bundle whether entries come one after the other or are read by several threads.
#include "sealift/bundle/bundle_writer.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "sealift/bundle/payload/chunk_digester.hpp"
#include "tests/support/noise.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_root.hpp"

using namespace sealift::bundle;
using sealift::test::noise;
using sealift::test::read_file;
using sealift::test::TempDir;

namespace {

constexpr std::uint64_t kLeastChunk = kMinChunkSize;

struct Input {
  std::string path;
  std::string bytes;
  Encoding encoding = Encoding::Identity;
};

// Name -> bytes.
using Files = std::map<std::string, std::string>;

Manifest draft_of_demo() {
  Manifest draft{.name = "demo", .channel = "test", .version = 1, .created = "2026-01-01T00:00:00Z"};
  draft.target = {.arch = "x86_64", .glibc = {2, 28}};
  draft.payload.chunk_size = kLeastChunk;
  draft.environment.interpreter = SafePath::parse("bin/python3", "");
  draft.environment.site_packages = SafePath::parse("lib/python3.11/site-packages", "");
  return draft;
}

Entry entry_of(const Input& input) {
  const ByteView view = as_bytes(input.bytes);
  return {.path = SafePath::parse(input.path, ""),
          .kind = EntryKind::File,
          .size = view.size(),
          .sha256 = sha256(view),
          .encoding = input.encoding};
}

Files finished(BundleWriter& writer, const TempDir& dir, const PrivateKey& key) {
  writer.finish({sealift::test::one_key_root(key)}, std::span(&key, 1));
  Files files;
  for (const auto& file : std::filesystem::directory_iterator(dir.path()))
    files[file.path().filename().string()] = read_file(file.path());
  return files;
}

// The files of a bundle with these inputs. Of an input that is `damaged`, first other bytes are added, which are
// refused.
Files written(const std::vector<Input>& inputs, std::uint64_t volume_size, const PrivateKey& key,
              const std::string& damaged = {}) {
  const TempDir dir;
  BundleWriter writer(dir.path(), draft_of_demo(), volume_size);
  for (const Input& input : inputs) {
    const ByteView view = as_bytes(input.bytes);
    const Entry entry = entry_of(input);
    if (input.path == damaged)
      for (const std::size_t at : {std::size_t{0}, view.size() - 1}) {
        Bytes other(view.begin(), view.end());
        other[at] ^= std::byte{1};
        MemorySource source(std::move(other), "damaged");
        CHECK_REFUSED(writer.add(entry, source), Digest, "damaged");
      }
    MemorySource source(Bytes(view.begin(), view.end()), input.path);
    writer.add(entry, source);
  }
  return finished(writer, dir, key);
}

// What a packer keeps of an input: its stored form, and the digests of that.
struct Kept {
  TempDir dir;
  StoredForm form;
  std::filesystem::path file = dir / "file";

  explicit Kept(const Input& input) {
    const ByteView view = as_bytes(input.bytes);
    MemorySource source(Bytes(view.begin(), view.end()), input.path);
    std::ofstream out(file, std::ios::binary);
    form = stored_form(entry_of(input), source, draft_of_demo().payload,
                       [&](ByteView piece) { out.write(as_text(piece).data(), std::ssize(piece)); });
  }
};

// The same bundle by files that several threads read. Of an input that is `damaged`, byte `at` is another one.
Files written_by_threads(const std::vector<Input>& inputs, std::uint64_t volume_size, const PrivateKey& key,
                         const std::string& damaged = {}, std::size_t at = 0) {
  const TempDir dir;
  std::vector<std::unique_ptr<Kept>> kept;
  std::atomic<std::uint64_t> read{0};
  std::uint64_t size = 0;
  std::set<Digest> stored;
  BundleWriter writer(dir.path(), draft_of_demo(), volume_size);
  for (const Input& input : inputs) {
    kept.push_back(std::make_unique<Kept>(input));
    const Kept& one = *kept.back();
    std::string bytes = read_file(one.file);
    if (input.path == damaged) bytes[std::min(at, bytes.size() - 1)] ^= 1;
    sealift::test::write_file(one.file, bytes);
    if (stored.insert(one.form.entry.stored_sha256).second) size += bytes.size();  // equal ones are stored once
    writer.add(one.form.entry, one.file, one.form.chunks, [&](std::uint64_t count) { read += count; });
  }
  std::vector<SafePath> others;
  if (!damaged.empty()) others.push_back(SafePath::parse(damaged, ""));
  CHECK(writer.other_than_known() == others);
  CHECK(read == size);
  if (!damaged.empty()) CHECK_REFUSED(writer.finish({}, {}), Digest, damaged);
  for (const auto& one : kept)
    if (one->form.entry.path.text() == damaged) {
      FileSource still(one->file);
      CHECK_REFUSED(writer.add_again(one->form.entry.path, still), Digest, damaged);
      std::string bytes = read_file(one->file);
      bytes[std::min(at, bytes.size() - 1)] ^= 1;
      sealift::test::write_file(one->file, bytes);
      FileSource good(one->file);
      writer.add_again(one->form.entry.path, good);
    }
  CHECK(writer.other_than_known().empty());
  return finished(writer, dir, key);
}

}  // namespace

TEST_CASE("files that several threads read make the bundle that one after the other makes, byte for byte") {
  const PrivateKey key = PrivateKey::generate();
  std::vector<Input> inputs = {{"a", noise(10)},
                               {"b", noise(3 * kLeastChunk), Encoding::Zstd},
                               {"c", std::string(50 * kLeastChunk, 'c'), Encoding::Zstd},
                               {"d", ""},
                               {"e", noise(kLeastChunk)},
                               {"f", noise(12 * kLeastChunk + 5) + "f"},
                               {"g", noise(kLeastChunk)}};
  for (int i = 0; i < 9; ++i) inputs.push_back({"h" + std::to_string(i), noise(static_cast<std::size_t>(i) * 997)});
  for (const std::uint64_t volume_size : {std::uint64_t{0}, 3 * kLeastChunk, 16 * kLeastChunk}) {
    const Files files = written(inputs, volume_size, key);
    CHECK(written_by_threads(inputs, volume_size, key) == files);
    CHECK(written_by_threads(inputs, volume_size, key, "a") == files);
    CHECK(written_by_threads(inputs, volume_size, key, "c") == files);
    CHECK(written_by_threads(inputs, volume_size, key, "f", 5 * kLeastChunk) == files);
    CHECK(written_by_threads(inputs, volume_size, key, "h8", 100 * kLeastChunk) == files);
  }
}

TEST_CASE("a file of another size than was said, or that is none, adds nothing") {
  const PrivateKey key = PrivateKey::generate();
  const Kept kept({"a", noise(2 * kLeastChunk)});
  const TempDir dir;
  BundleWriter writer(dir.path(), draft_of_demo(), 0);
  std::filesystem::resize_file(kept.file, kLeastChunk);
  CHECK_REFUSED(writer.add(kept.form.entry, kept.file, kept.form.chunks), Digest, "8192 bytes");
  CHECK_REFUSED(writer.add(kept.form.entry, dir.path(), kept.form.chunks), Format, "a folder");
  CHECK_REFUSED(writer.add(kept.form.entry, dir / "gone", kept.form.chunks), Missing, "gone");
  CHECK(finished(writer, dir, key) == written({}, 0, key));
}

TEST_CASE("an input that was refused leaves no trace: added again from a good source, the bundle is the same") {
  const PrivateKey key = PrivateKey::generate();
  for (const std::uint64_t volume_size : {std::uint64_t{0}, kLeastChunk, 3 * kLeastChunk})
    for (const std::size_t first : {std::size_t{10}, std::size_t{kLeastChunk - 1024}, std::size_t{2 * kLeastChunk}})
      for (const std::size_t size : {std::size_t{10}, std::size_t{kLeastChunk - 512}, std::size_t{kLeastChunk},
                                     std::size_t{7 * kLeastChunk + 5}}) {
        const std::vector<Input> inputs = {{"a", noise(first)}, {"b", noise(size) + "b"}, {"c", "c"}};
        CHECK(written(inputs, volume_size, key) == written(inputs, volume_size, key, "b"));
      }
}

TEST_CASE("the same holds for the first and the last input, and for one that is compressed") {
  const PrivateKey key = PrivateKey::generate();
  const std::vector<Input> inputs = {
      {"a", noise(2 * kLeastChunk) + "a"}, {"b", noise(3 * kLeastChunk), Encoding::Zstd}, {"c", noise(kLeastChunk)}};
  const auto files = written(inputs, 2 * kLeastChunk, key);
  CHECK(files.size() > 4);
  for (const char* damaged : {"a", "b", "c"}) CHECK(files == written(inputs, 2 * kLeastChunk, key, damaged));
}
