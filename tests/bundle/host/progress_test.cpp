// SPDX-License-Identifier: Apache-2.0
// What is said while a tool works, where stderr is no terminal.
#include "sealift/bundle/host/progress.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

using sealift::bundle::Progress;

namespace {

// What is printed on a stream that is a file in memory.
template <class Work>
std::string printed(const Work& work) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = ::open_memstream(&text, &size);
  {
    Progress progress(stream);
    work(progress);
  }
  std::fclose(stream);
  const std::string result(text, size);
  std::free(text);
  return result;
}

}  // namespace

TEST_CASE("a note is a line, and a warning says that it is one") {
  CHECK(printed([](Progress& progress) {
          progress.note("resolving");
          progress.warn("no wheel");
        }) == "resolving\nwarning: no wheel\n");
}

TEST_CASE("progress without a terminal is a line every ten seconds") {
  CHECK(printed([](Progress& progress) {
          progress.tell("the build: 3 s: [1/72] nvcc");
          progress.tell("the build: 4 s: [2/72] nvcc");
          progress.note("built");
        }) == "the build: 3 s: [1/72] nvcc\nbuilt\n");
}

TEST_CASE("a count that was quick is one line: label, bytes, rate, seconds") {
  const std::string line = printed([](Progress& progress) {
    progress.begin("fetching 2 files", 4'000'000);
    progress.add(3'000'000);
    progress.add(1'000'000);
    progress.end();
  });
  CHECK(line.starts_with("fetching 2 files: 4.0 MB of 4.0 MB, "));
  CHECK(line.find("/s, ") != std::string::npos);
  CHECK(line.ends_with(" s\n"));
}

TEST_CASE("bytes that were there before count as done but not as fast, and bytes that were lost count no more") {
  const std::string line = printed([](Progress& progress) {
    progress.begin("fetching", 0);
    progress.skip(5'000'000);
    progress.add(2'000);
    progress.take_back(2'000);
    progress.end();
  });
  CHECK(line.starts_with("fetching: 5.0 MB, 0 B/s, "));
}

TEST_CASE("without a stream nothing is printed") {
  Progress silent(nullptr);
  silent.note("resolving");
  silent.begin("fetching", 1);
  silent.add(1);
  silent.end();
}
