// SPDX-License-Identifier: Apache-2.0
// Measures what each member of a wheel costs an installer: a line per member with its processor seconds, by the code
// that installs (ISA-L, CRC-32), into a buffer instead of a file. schedule.py makes a model of these.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include "sealift/bundle/archive/zip.hpp"
#include "sealift/bundle/core/digest.hpp"

using namespace sealift;

namespace {

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// Bytes a second of one core, of memory that is in its cache: what chunks are hashed at.
double hash_rate() {
  const std::vector<std::byte> piece(std::size_t{256} << 10);
  const double begin = processor_seconds();
  bundle::Hasher hasher;
  constexpr int kPieces = 4096;
  for (int i = 0; i < kPieces; ++i) hasher.update(piece);
  hasher.finish();
  return static_cast<double>(piece.size()) * kPieces / (processor_seconds() - begin);
}

// The file's bytes are copied as they are written: into a buffer that a disk takes without a further copy.
void measure(const char* path) {
  bundle::FileSource source(path);
  bundle::ZipReader zip(source);
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  for (const bundle::ZipMember& member : zip.members()) {
    std::size_t at = 0;
    const double begin = processor_seconds();
    zip.extract(member, [&](bundle::ByteView piece) {
      if (at + piece.size() > buffer.size()) at = 0;
      std::memcpy(buffer.data() + at, piece.data(), std::min(piece.size(), buffer.size()));
      at += piece.size();
    });
    std::printf("%s\t%llu\t%llu\t%llu\t%.6f\n", path, static_cast<unsigned long long>(member.header_offset),
                static_cast<unsigned long long>(member.end_offset - member.header_offset),
                static_cast<unsigned long long>(member.size), processor_seconds() - begin);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  std::printf("sha256\t%.0f\n", hash_rate());
  for (int i = 1; i < argc; ++i) measure(argv[i]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
