// SPDX-License-Identifier: Apache-2.0
// Token files on disk: mapped, and held to their digest.
#include "trainer/data/token_file.hpp"

#include "tests/train/data/made_token_file.hpp"
#include "trainer/data/joined_tokens.hpp"

#include <sealift/train/checkpoint/digest.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <stdexcept>

#include <unistd.h>

using namespace sealift::test;
using namespace sealift::trainer;

namespace {

class Folder {
 public:
  Folder() { std::filesystem::create_directories(path_); }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path with(const std::string& bytes) const {
    std::ofstream(path_ / "made", std::ios::binary) << bytes;
    return path_ / "made";
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_ = std::filesystem::temp_directory_path() / ("token-file-" + std::to_string(getpid()));
};

/// `bytes` with the right digest in its place.
std::string signed_with_digest(std::string bytes) {
  sealift::train::Sha256 digest;
  digest.update(bytes.data(), 128);
  digest.update(bytes.data() + 160, bytes.size() - 160);
  const auto hex = digest.hex();
  for (std::size_t at = 0; at < 32; ++at)
    bytes[128 + at] = static_cast<char>(std::stoi(hex.substr(2 * at, 2), nullptr, 16));
  return bytes;
}

}  // namespace

TEST_CASE("a token file with the right digest is accepted, and each changed byte of it is found") {
  const Folder folder;
  const auto good = signed_with_digest(made_chats().bytes());
  CHECK_NOTHROW(TokenFile::open(folder.with(good)).check_content());
  for (const std::size_t at : {std::size_t{64}, std::size_t{127}, std::size_t{128}, good.size() - 1}) {
    auto bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    const auto file = TokenFile::open(folder.with(bad));
    CHECK_THROWS_WITH_AS(file.check_content(), doctest::Contains("is damaged"), std::invalid_argument);
  }
}

TEST_CASE("a token outside of the vocabulary is found under a right digest") {
  const Folder folder;
  auto made = made_chats();
  made.sequences[2][0] = 100;
  const auto file = TokenFile::open(folder.with(signed_with_digest(made.bytes())));
  CHECK_THROWS_WITH_AS(file.check_content(), doctest::Contains("token 0 of sequence 2"), std::invalid_argument);
}

TEST_CASE("what is no file is refused with its name") {
  const Folder folder;
  CHECK_THROWS_WITH_AS(TokenFile::open(folder.path() / "none"), doctest::Contains("none"), std::invalid_argument);
  CHECK_THROWS_AS(TokenFile::open(folder.path()), std::invalid_argument);
  CHECK_THROWS_AS(TokenFile::open(folder.with("")), std::invalid_argument);
}

TEST_CASE("a file that is cut while it is read is an error with its name, not the end of the process") {
  const Folder folder;
  const auto path = folder.with(signed_with_digest(made_chats().bytes()));
  const auto file = TokenFile::open(path);
  CHECK(file->sequence(1).token(8) == 12);
  std::filesystem::resize_file(path, 200);
  CHECK_THROWS_WITH_AS(file->sequence(1), doctest::Contains("was cut while it was read"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(file.check_content(), doctest::Contains("was cut while it was read"), std::invalid_argument);
  std::filesystem::resize_file(path, 160);
  CHECK_THROWS_WITH_AS(file->length(0), doctest::Contains(path.c_str()), std::invalid_argument);
}

TEST_CASE("a table of sequences that is overwritten while it is read leads to no bytes outside of the file") {
  const Folder folder;
  const auto good = made_chats().bytes();
  const auto file = TokenFile::open(folder.with(good));
  folder.with(patched(good, 160 + 2 * 8, std::uint64_t{1} << 40));
  CHECK_THROWS_WITH_AS(file->sequence(1), doctest::Contains("changed while it was read"), std::invalid_argument);
}

TEST_CASE("a copy keeps the open file") {
  const Folder folder;
  auto file = std::make_unique<TokenFile>(TokenFile::open(folder.with(made_chats().bytes())));
  const TokenFile copy = *file;
  file.reset();
  CHECK(copy->sequence(1).token(8) == 12);
}

namespace {

/// The examples of `all` from the first sequence on, or from `begin`.
MadeTokenFile part_of(MadeTokenFile all, std::size_t begin, std::size_t end) {
  const auto cut = [&](auto& list, std::size_t first, std::size_t last) {
    list = {list.begin() + static_cast<std::ptrdiff_t>(first), list.begin() + static_cast<std::ptrdiff_t>(last)};
  };
  const std::size_t of_example = all.kind == 2 ? 2 : 1;
  if (!all.values.empty()) cut(all.values, begin / of_example, end / of_example);
  cut(all.sequences, begin, end);
  cut(all.counts, begin, end);
  return all;
}

std::filesystem::path written(const Folder& folder, const char* name, const std::string& bytes) {
  const auto path = folder.path() / name;
  std::ofstream(path, std::ios::binary) << signed_with_digest(bytes);
  return path;
}

}  // namespace

TEST_CASE("token files that are joined are the file of all their sequences, byte for byte") {
  const Folder folder;
  for (const auto& [all, cut] : {std::pair{made_chats(), 1}, {made_chats(), 2}, {made_preferences(), 2}}) {
    const auto one = written(folder, "one", part_of(all, 0, cut).bytes());
    const auto two = written(folder, "two", part_of(all, cut, all.sequences.size()).bytes());
    join_token_files({one, two}, folder.path() / "both");
    std::ifstream both(folder.path() / "both", std::ios::binary);
    CHECK(std::string(std::istreambuf_iterator<char>(both), {}) == signed_with_digest(all.bytes()));
    CHECK_FALSE(std::filesystem::exists(folder.path() / "both.partial"));
  }
}

TEST_CASE("token files that were made by other kinds, models or templates are not joined, nor damaged ones") {
  const Folder folder;
  const auto chats = written(folder, "chats", made_chats().bytes());
  const auto refused = [&](const std::filesystem::path& other, const char* why) {
    CHECK_THROWS_WITH_AS(join_token_files({chats, other}, folder.path() / "both"), doctest::Contains(why),
                         std::invalid_argument);
    CHECK_FALSE(std::filesystem::exists(folder.path() / "both"));
  };
  refused(written(folder, "other", made_preferences().bytes()), "differ in their kind: chat and preference");
  refused(written(folder, "other", patched(made_chats().bytes(), 64, '\1')), "differ in their tokenizer");
  refused(written(folder, "other", patched(made_chats().bytes(), 96, '\1')), "differ in their chat template");
  refused(written(folder, "other", patched(made_chats().bytes(), 24, std::uint64_t{101})),
          "differ in their vocabulary");
  refused(folder.with(patched(made_chats().bytes(), 128, '\1')), "is damaged");
}
