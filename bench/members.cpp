// SPDX-License-Identifier: Apache-2.0
// Measures what each member of a wheel costs an installer: a line per member with its processor seconds, by the code
// that installs (ISA-L, CRC-32), into a buffer instead of a file; before them the machine's rates. schedule.py makes a
// model of these.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <numeric>
#include <thread>
#include <vector>

#include "sealift/bundle/archive/zip.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/parallel_for.hpp"

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

// Bytes a second that all cores together read from memory, each its own: what ends the gain of more of them.
double memory_rate() {
  constexpr std::size_t kNumbers = std::size_t{8} << 20;  // of a thread, 64 MiB
  constexpr int kRounds = 8;
  const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::vector<std::uint64_t>> numbers(threads);
  bundle::parallel_for(threads, threads, [&](std::size_t i) { numbers[i].assign(kNumbers, i); });
  std::atomic<std::uint64_t> sums{0};  // so that nothing is left out
  const auto begin = std::chrono::steady_clock::now();
  bundle::parallel_for(threads, threads, [&](std::size_t i) {
    for (int round = 0; round < kRounds; ++round)
      sums += std::accumulate(numbers[i].begin(), numbers[i].end(), std::uint64_t{0});
  });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(sizeof(std::uint64_t) * kNumbers * threads) * kRounds / took.count();
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
  std::printf("memory\t%.0f\n", memory_rate());
  for (int i = 1; i < argc; ++i) measure(argv[i]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
