// SPDX-License-Identifier: Apache-2.0
// The memory that `create` takes, as the system counts it for the whole process: the same for a small model and for one
// that is larger than any buffer.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdlib>

#include "packager/models/lock_model.hpp"
#include "sealift/safetensors.hpp"
#include "tests/packager/workshop.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::Workshop;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMegabyte = 1'000'000;

// The largest that the real program was, in bytes, while it packed a model of `size` bytes.
std::uint64_t peak_of_create(std::uint64_t size) {
  Workshop workshop;
  const std::string folder = workshop.dir.path().string();
  safetensors::Header header{.tensors = {{.name = "w", .dtype = "U8", .shape = {size}}}};
  const std::string head = safetensors::write_header(header);
  const fs::path weights = workshop.dir / "weights/model.safetensors";
  write_file(weights, head);
  fs::resize_file(weights, head.size() + size);  // sparse: it takes no room until it is packed
  write_file(workshop.dir / "weights/config.json", "{}");
  const Cache cache(workshop.cache());
  bundle::Progress silent(nullptr);
  workshop.lock.models =
      list_models({{.spec = {.folder = workshop.dir / "weights", .into = "models/big"}, .include = {}, .exclude = {}}},
                  cache, silent, {});
  hash_models(workshop.lock.models, cache, silent);
  write_file(workshop.dir / "demo.lock.toml", write_lock(workshop.lock, workshop.dir.path()));
  const pid_t child = ::fork();
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nowhere, 1), ::dup2(nowhere, 2);
    ::execl(SEALIFT_PACK, SEALIFT_PACK, "create", (folder + "/demo.lock.toml").c_str(), "--root",
            (folder + "/root.1.json").c_str(), "--key", (folder + "/release.key").c_str(), "-o",
            (folder + "/out").c_str(), "--cache", workshop.cache().c_str(), "--installer",
            (folder + "/sealift-install").c_str(), "--no-rehearsal", nullptr);
    ::_exit(98);
  }
  int status = 0;
  rusage used{};
  ::wait4(child, &status, 0, &used);
  CHECK(status == 0);
  CHECK(fs::file_size(workshop.dir / "out/demo-1/demo-1.vol001") > size);
  return static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
}

void check_flat(std::uint64_t size) {
  const std::uint64_t small = peak_of_create(kMegabyte), large = peak_of_create(size);
  MESSAGE("create took ", small / kMegabyte, " MB for 1 MB, ", large / kMegabyte, " MB for ", size / kMegabyte, " MB");
  CHECK(large < 300 * kMegabyte);
  // A thread's buffers may be used or not.
  CHECK(large < small + 48 * kMegabyte);
}

}  // namespace

TEST_CASE("create takes no more memory for a larger model") {
  check_flat(200 * kMegabyte);
}

TEST_CASE("slow: create takes no more memory for 3 GB") {
  if (std::getenv("SEALIFT_TEST_SLOW") == nullptr) return;  // set by the test that is labelled `slow`
  check_flat(3000 * kMegabyte);
}
