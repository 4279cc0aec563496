// SPDX-License-Identifier: Apache-2.0
// Images as the kernel, or unsquashfs, reads them: all that a tree can have, and trees at the format's limits.
#include "bundle/image/image_writer.hpp"

#include <doctest/doctest.h>

#include "tests/support/image_trees.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/shown_image.hpp"

using namespace sealift;
using namespace sealift::bundle;
using namespace sealift::test;

TEST_CASE("an image shows each kind of file with its bytes, its mode and one time") {
  const TempDir dir;
  const PlainTree tree = each_kind_of_file();
  const std::uint64_t size = write_image_of(tree, dir / "image");
  CHECK(size == std::filesystem::file_size(dir / "image"));
  CHECK(size % 4096 == 0);
  CHECK(size < 8 * kImageBlock);  // equal bytes stand there once
  const ShownImage shown(dir / "image");
  if (!shown) return;
  CHECK(without_twins(read_image(shown.path())) == tree.expected());
  for (const std::filesystem::directory_entry& there : std::filesystem::recursive_directory_iterator(shown.path())) {
    struct stat status {};
    REQUIRE(::lstat(there.path().c_str(), &status) == 0);
    CHECK(status.st_mtim.tv_sec == 1'700'000'000);
    if (shown.by_kernel()) CHECK(status.st_uid + status.st_gid == 0);
  }
}

TEST_CASE("an image has the same bytes with any number of threads") {
  const TempDir dir;
  PlainTree tree = each_kind_of_file();
  for (int i = 0; i < 300; ++i)
    tree.paths["lib/" + std::to_string(i)] = noise(static_cast<std::size_t>(i) * 977 % 300'000, 7) + std::to_string(i);
  write_image_of(tree, dir / "1", 1);
  const std::string first = read_file(dir / "1");
  for (const unsigned threads : {2u, 3u, 16u}) {
    const std::string name = std::to_string(threads);
    write_image_of(tree, dir / name, threads);
    CHECK(read_file(dir / name) == first);
  }
}

TEST_CASE("an image holds forty thousand names in one folder and a hundred folders in each other") {
  const TempDir dir;
  PlainTree tree;
  tree.paths["many/"] = "";
  for (int i = 0; i < 40'000; ++i) tree.paths["many/file_" + std::to_string(i)] = std::to_string(i);
  std::string deep;
  for (int i = 0; i < 100; ++i) tree.paths[deep += "d/"] = "";
  tree.paths[deep + "end"] = "the end";
  write_image_of(tree, dir / "image");
  const ShownImage shown(dir / "image");
  if (shown) CHECK((without_twins(read_image(shown.path())) == tree.expected()));
}

TEST_CASE("an image of nothing is an empty folder") {
  const TempDir dir;
  write_image_of({}, dir / "image");
  const ShownImage shown(dir / "image");
  if (shown) CHECK(read_image(shown.path()).empty());
}

TEST_CASE("a file that is shorter or longer than its tree says ends an image") {
  const TempDir dir;
  const ImageTree tree{{.path = "file", .type = ImageNode::Type::File, .size = 5}};
  for (const std::string bytes : {"1234", "123456"}) {
    const Descriptor file(::open((dir / bytes).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    const ReadImageFile read = [&](const ImageNode&, const ByteSink& sink) { sink(as_bytes(bytes)); };
    CHECK_REFUSED(write_image(tree, {0}, read, {.time = kImageTime}, file, dir / bytes), Format, "another size");
  }
}

TEST_CASE("a disk that is full while an image is written is named") {
  const TempDir dir;
  const ImageTree tree{{.path = "file", .type = ImageNode::Type::File, .size = 1000}};
  const Descriptor full(::open("/dev/full", O_RDWR | O_CLOEXEC));
  const ReadImageFile read = [&](const ImageNode&, const ByteSink& sink) { sink(as_bytes(noise(1000, 1))); };
  CHECK_REFUSED(write_image(tree, {0}, read, {.time = kImageTime}, full, "/dev/full"), Space, "/dev/full");
}
