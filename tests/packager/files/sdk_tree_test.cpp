// SPDX-License-Identifier: Apache-2.0
// Which files of an installation are the C++ core, and that another folder is refused by what it lacks.
#include "packager/files/sdk_tree.hpp"

#include <doctest/doctest.h>

#include "packager/create.hpp"
#include "tests/packager/workshop.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::TempDir;
using sealift::test::Workshop;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

// What `cmake --install` leaves, and more that lies in the same folders.
void install(const fs::path& root, const std::string& library = "lib") {
  for (const char* header : {"safetensors.hpp", "safetensors_values.hpp", "strict_json.hpp", "train.hpp",
                             "train_compiled.cpp", "train/policy.hpp", "train/unit/flat.hpp", "bundle/core/error.hpp"})
    write_file(root / "include/sealift" / header, std::string("// ") + header + "\n");
  const fs::path package = root / library / "cmake/sealift";
  for (const char* file : {"sealift-config.cmake", "sealift_train.cmake", "FindLibTorch.cmake", "sealift-built.cmake",
                           "sealift_bundle.cmake"})
    write_file(package / file, "# cmake\n");
  write_file(package / "sealift-config-version.cmake", "set(PACKAGE_VERSION \"0.1.0\")\n");
  write_file(root / "share/doc/sealift/LICENSE", "Apache License\n");
  write_file(root / library / "libsealift_bundle.a", "!<arch>\n");
}

std::vector<std::string> paths_of(const Tree& tree) {
  std::vector<std::string> paths;
  for (const auto& [path, item] : tree) paths.push_back(path);
  return paths;
}

}  // namespace

TEST_CASE("the C++ core is its headers, its CMake package and its licence, and nothing that names the machine") {
  const TempDir dir;
  std::string library = "lib";
  SUBCASE("where most systems have it") {}
  SUBCASE("where Debian has it") {
    library = "lib/x86_64-linux-gnu";
  }
  install(dir.path(), library);
  const SdkTree sdk = gather_sdk(dir.path());
  CHECK(sdk.version == "0.1.0");
  CHECK(paths_of(sdk.tree) ==
        std::vector<std::string>{"include/sealift/safetensors.hpp", "include/sealift/safetensors_values.hpp",
                                 "include/sealift/strict_json.hpp", "include/sealift/train.hpp",
                                 "include/sealift/train/policy.hpp", "include/sealift/train/unit/flat.hpp",
                                 "include/sealift/train_compiled.cpp", library + "/cmake/sealift/FindLibTorch.cmake",
                                 library + "/cmake/sealift/sealift-config-version.cmake",
                                 library + "/cmake/sealift/sealift-config.cmake",
                                 library + "/cmake/sealift/sealift_train.cmake", "share/doc/sealift/LICENSE"});
}

TEST_CASE("a folder that is no installation of the core is refused with what is missing and how to make one") {
  const TempDir dir;
  CHECK_REFUSED(gather_sdk(dir / "nowhere"), Missing, "--component headers");
  install(dir.path());
  const auto without = [&](const std::string& path) {
    const fs::path aside = dir / "aside";
    fs::rename(dir / path, aside);
    CHECK_REFUSED(gather_sdk(dir.path()), Missing, (dir / path).string());
    fs::rename(aside, dir / path);
  };
  without("include/sealift/train.hpp");
  without("include/sealift/train");
  without("lib/cmake/sealift/sealift_train.cmake");
  without("share/doc/sealift/LICENSE");
  fs::create_symlink("/etc/passwd", dir / "include/sealift/train/link.hpp");
  CHECK_REFUSED(gather_sdk(dir.path()), Missing, "link.hpp");
  fs::remove(dir / "include/sealift/train/link.hpp");
  write_file(dir / "include/sealift/train/large.hpp", std::string((4 << 20) + 1, ' '));
  CHECK_REFUSED(gather_sdk(dir.path()), Format, "large.hpp");
  fs::remove(dir / "include/sealift/train/large.hpp");
  write_file(dir / "lib/cmake/sealift/sealift-config-version.cmake", "set(PACKAGE_VERSION \"../1\")\n");
  CHECK_REFUSED(gather_sdk(dir.path()), Missing, "sealift-config-version.cmake");
}

TEST_CASE("a bundle carries the core as one compressed tree of its own, which no program may write into") {
  Workshop workshop;
  install(workshop.dir / "installed");
  const SdkTree sdk = gather_sdk(workshop.dir / "installed");
  const TreeTar tar = write_tree_tar(sdk.tree, workshop.dir / "sdk.tar");
  Cache(workshop.cache()).adopt(workshop.dir / "sdk.tar", tar.sha256);
  workshop.lock.sdk = {.version = sdk.version, .sha256 = tar.sha256, .size = tar.size};
  const CreateResult result = workshop.pack();
  const bundle::Entry* entry = result.manifest.find(bundle::SafePath::parse("sdk/sealift-0.1.0.tar", ""));
  REQUIRE(entry != nullptr);
  CHECK(entry->kind == bundle::EntryKind::Tree);
  CHECK(entry->encoding == bundle::Encoding::Zstd);
  CHECK(entry->installed_files >= sdk.tree.size());
  workshop.add_program("include/sealift/train.hpp", "// mine\n");
  CHECK_REFUSED(workshop.pack("again"), Conflict, "include/sealift/train.hpp");
}

TEST_CASE("a core that cannot be what the lock pins is refused") {
  Workshop workshop;
  Tree tree;
  tree["lib/python3.11/site-packages/evil.pth"] = {.text = "import os\n"};
  const TreeTar tar = write_tree_tar(tree, workshop.dir / "sdk.tar");
  workshop.lock.sdk = {.version = "0.1.0", .sha256 = tar.sha256, .size = tar.size};
  CHECK_REFUSED(workshop.pack(), Missing, "the C++ core that was locked is not in the cache");
  Cache(workshop.cache()).adopt(workshop.dir / "sdk.tar", tar.sha256);
  CHECK_REFUSED(workshop.pack(), Conflict, "belong to wheels");
}
