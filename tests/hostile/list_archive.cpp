// SPDX-License-Identifier: Apache-2.0
// Lists archives as our readers see them, for the comparison with other archivers: one line of JSON a file,
// null when it is refused, else [[path, "file SIZE" | "folder" | "link TARGET"], ...]. KIND is tar, zip or wheel.
#include <unistd.h>

#include <cstdio>

#include "bundle/core/json.hpp"
#include "tests/support/hostile/read_hostile.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::test;

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: list_archive KIND FILE...\n");
    return 2;
  }
  const std::string kind = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string bytes = read_file(argv[i]), name = std::filesystem::path(argv[i]).filename().string();
    bundle::Json line;
    try {
      line = kind == "tar" ? list_tar(bytes, name) : kind == "wheel" ? list_wheel(bytes, name) : list_zip(bytes, name);
    } catch (const bundle::Error& error) {
      std::fprintf(stderr, "%s: %s\n", argv[i], error.what());
    }
    std::printf("%s\n", line.dump().c_str());
  }
  return 0;
}
