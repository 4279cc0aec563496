// SPDX-License-Identifier: Apache-2.0
// Section by section, since a token file has its table before its bits before its tokens; no more than one sequence is
// held.
// See joined_tokens.hpp; docs/token_files.md has the format, token_view.cpp reads it.
#include "trainer/data/joined_tokens.hpp"

#include "trainer/data/token_file.hpp"

#include <sealift/train/checkpoint/digest.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace sealift::trainer {
namespace {

static_assert(std::endian::native == std::endian::little, "a token file's numbers are little-endian");

constexpr std::size_t kDigestPlace = 128;

void check_alike(const TokenView& first, const TokenView& other) {
  const auto differ = [&](const char* what, const std::string& wanted, const std::string& found) {
    if (wanted == found) return;
    throw std::invalid_argument("the token files " + first.name() + " and " + other.name() + " differ in their " +
                                what + ": " + wanted + " and " + found +
                                "; tokenize both with this model and these settings");
  };
  const auto& [one, two] = std::pair(first.header(), other.header());
  differ("kind", name_of(one.kind), name_of(two.kind));
  differ("tokenizer (SHA-256)", one.tokenizer_sha256, two.tokenizer_sha256);
  differ("chat template (SHA-256)", one.template_sha256, two.template_sha256);
  differ("vocabulary", std::to_string(one.vocabulary), std::to_string(two.vocabulary));
}

/// A file that is written from its begin to its end, and the digest of what was.
class Sink {
 public:
  explicit Sink(const std::filesystem::path& path) : path_(path), file_(path, std::ios::binary | std::ios::trunc) {
    check();
  }

  void put(const void* bytes, std::size_t count) {
    digest_.update(bytes, count);
    put_unseen(bytes, count);
  }
  template <class Number>
  void number(Number value) {
    put(&value, sizeof value);
  }
  /// Bytes that the digest leaves out.
  void put_unseen(const void* bytes, std::size_t count) {
    file_.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
    at_ += count;
    check();
  }
  void pad() {
    const std::uint64_t zeros = 0;
    put(&zeros, (8 - at_ % 8) % 8);
  }
  void finish() {
    const auto bytes = of_hex(digest_.hex());
    file_.seekp(kDigestPlace);
    file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file_.close();
    check();
  }

  static std::string of_hex(const std::string& digits) {
    std::string bytes;
    for (std::size_t at = 0; at < digits.size(); at += 2) {
      bytes += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
    }
    return bytes;
  }

 private:
  void check() const {
    if (file_) return;
    throw std::invalid_argument("cannot write " + path_.string() + ": " + std::strerror(errno) +
                                "; make room for as much as the token files have, or join them elsewhere");
  }

  std::filesystem::path path_;
  std::ofstream file_;
  train::Sha256 digest_;
  std::uint64_t at_ = 0;
};

using Files = std::vector<TokenFile>;

template <class Take>
void each_sequence(const Files& files, const Take& take) {
  for (const auto& file : files) {
    for (std::uint64_t at = 0; at < file->header().sequences; ++at) take(file->sequence(at));
  }
}

void put_header(Sink& sink, const Files& files, std::uint32_t token_bytes) {
  const auto& header = files.front()->header();
  std::uint64_t examples = 0, sequences = 0, tokens = 0;
  for (const auto& file : files) {
    examples += file->header().examples;
    sequences += file->header().sequences;
    tokens += file->header().tokens;
  }
  sink.put("SLTOKENS", 8);
  for (const std::uint32_t value : {1U, static_cast<std::uint32_t>(header.kind), token_bytes, 0U}) sink.number(value);
  for (const std::uint64_t value : {header.vocabulary, examples, sequences, tokens, std::uint64_t{0}})
    sink.number(value);
  for (const auto& digits : {header.tokenizer_sha256, header.template_sha256}) {
    const auto bytes = Sink::of_hex(digits);
    sink.put(bytes.data(), bytes.size());
  }
  const char later[32] = {};
  sink.put_unseen(later, sizeof later);
}

void put_bits(Sink& sink, const Files& files) {
  std::uint8_t byte = 0;
  int bits = 0;
  each_sequence(files, [&](const TokenSequence& sequence) {
    for (std::size_t at = 0; at < sequence.size(); ++at) {
      byte = static_cast<std::uint8_t>(byte | (sequence.counts(at) ? 1U << bits : 0U));
      if (++bits < 8) continue;
      sink.number(byte);
      byte = 0;
      bits = 0;
    }
  });
  if (bits > 0) sink.number(byte);
  sink.pad();
}

void put_tokens(Sink& sink, const Files& files, std::uint32_t token_bytes) {
  each_sequence(files, [&](const TokenSequence& sequence) {
    for (std::size_t at = 0; at < sequence.size(); ++at) {
      const auto token = sequence.token(at);
      sink.put(&token, token_bytes);  // the lower bytes come first
    }
  });
}

}  // namespace

void join_token_files(const std::vector<std::filesystem::path>& paths, const std::filesystem::path& out) {
  Files files;
  for (const auto& path : paths) {
    files.push_back(TokenFile::open(path));
    check_alike(files.front().view(), files.back().view());
    files.back().check_content();
  }
  auto partial = out;
  partial += ".partial";
  Sink sink(partial);
  std::uint32_t token_bytes = 2;
  for (const auto& file : files) token_bytes = std::max(token_bytes, file->header().token_bytes);
  put_header(sink, files, token_bytes);
  std::uint64_t begin = 0;
  sink.number(begin);
  for (const auto& file : files) {
    for (std::uint64_t at = 0; at < file->header().sequences; ++at) sink.number(begin += file->length(at));
  }
  const auto kind = files.front()->header().kind;
  for (const auto& file : files) {
    if (kind != ExampleKind::Preference && kind != ExampleKind::Labelled) break;
    for (std::uint64_t at = 0; at < file->examples(); ++at) sink.number(file->value(at));
  }
  sink.pad();
  put_bits(sink, files);
  put_tokens(sink, files, token_bytes);
  sink.finish();
  std::filesystem::rename(partial, out);
}

}  // namespace sealift::trainer
