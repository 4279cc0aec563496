// SPDX-License-Identifier: Apache-2.0
// From real (tiny) bundles to the catalogue: what is read, what is united, what is refused.
#include "offline_repo/catalogue/catalogue.hpp"

#include <fstream>

#include "tests/support/left_out.hpp"
#include "tests/support/noise.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"
#include "tests/support/tiny_patch.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
using namespace sealift::offline_repo;

namespace {

VerifiedBundle verified(const MadeBundle& made) {
  return verify(open(made.folder), made.trusted, kNow);
}

}  // namespace

TEST_CASE("the catalogue holds each wheel under its normalized project with what its METADATA says") {
  const TempDir dir;
  const TinyWheel wheel{.name = "Demo_Kit", .version = "1.0", .extra_metadata = "Requires-Python: >=3.8\n"};
  const MadeBundle made = make_bundle(
      dir / "b", {.items = {wheel_item(wheel), {.path = "programs/tool", .bytes = "x", .into = "bin/tool"}}});
  const Catalogue catalogue = make_catalogue({verified(made)});
  CHECK(catalogue.bundles == std::vector<std::string>{"tiny-1"});
  REQUIRE(catalogue.wheel_count() == 1);
  const Project* project = catalogue.find_project("demo.kit");
  REQUIRE(project != nullptr);
  CHECK(project->name == "demo-kit");
  const IndexedWheel& found = project->wheels.at("Demo_Kit-1.0-py3-none-any.whl");
  const std::string bytes = make_wheel(wheel);
  CHECK(found.size == bytes.size());
  CHECK(found.sha256 == sha256(as_bytes(bytes)));
  CHECK(found.version == "1.0");
  CHECK(found.requires_python == ">=3.8");
  CHECK(found.metadata.starts_with("Metadata-Version: 2.1\nName: Demo_Kit\n"));
  CHECK(found.metadata_sha256 == sha256(as_bytes(found.metadata)));
  CHECK(catalogue.find_wheel(found.sha256.hex(), found.file_name) == &found);
  CHECK(catalogue.find_wheel(std::string(64, '0'), found.file_name) == nullptr);
  CHECK(catalogue.find_wheel(found.sha256.hex(), "demo_kit-1.0-py3-none-any.whl") == nullptr);
  CHECK(catalogue.find_project("other") == nullptr);
}

TEST_CASE("a wheel that another bundle has is not read again, unless its bytes or what is allowed of them differ") {
  const auto bytes_read = [] {
    std::ifstream file("/proc/self/io");
    std::string name;
    std::uint64_t count = 0;
    file >> name >> count;  // rchar: what this process asked the system for
    return count;
  };
  if (bytes_read() == 0) {
    sealift::test::left_out("this system does not tell what was read");
    return;
  }
  const TempDir dir;
  const auto made = [&](const std::string& name, const TinyWheel& wheel, std::vector<Digest> startup = {}) {
    return std::make_shared<const VerifiedBundle>(
        verified(make_bundle(dir / name, {.name = name,
                                          .created = name == "one" ? "2026-01-01T00:00:00Z" : "2026-01-02T00:00:00Z",
                                          .startup_files = std::move(startup),
                                          .items = {wheel_item(wheel)}})));
  };
  const TinyWheel wheel{.files = {{"demo/data.bin", noise(500'000)}}};
  TinyWheel other = wheel;
  other.extra_metadata = "Requires-Dist: more\n";
  const Contents one = read_contents(made("one", wheel));
  const auto reads = [&](const std::shared_ptr<const VerifiedBundle>& in, const std::vector<Contents>& before) {
    const std::uint64_t start = bytes_read();
    const Contents contents = read_contents(in, before);
    REQUIRE(contents->wheels.size() == 1);
    const IndexedWheel& found = contents->wheels[0];
    CHECK(found.in == in);
    CHECK(found.entry == &in->manifest().entries[0]);
    CHECK(found.uploaded == "2026-01-02T00:00:00Z");
    CHECK(found.metadata_sha256 == sha256(as_bytes(found.metadata)));
    CHECK((found.metadata == one->wheels[0].metadata) == (found.sha256 == one->wheels[0].sha256));
    return bytes_read() - start > 4096;
  };
  CHECK_FALSE(reads(made("two", wheel), {one}));
  CHECK(reads(made("three", wheel), {}));
  CHECK(reads(made("four", other), {one}));
  CHECK(reads(made("five", wheel, {sha256(as_bytes("a.pth"))}), {one}));
}

TEST_CASE("several bundles make one index, and the same wheel in two of them is one wheel") {
  const TempDir dir;
  const TinyItem common = wheel_item({}), other = wheel_item({.name = "other"});
  const MadeBundle one = make_bundle(dir / "1", {.name = "one", .created = "2026-01-09T00:00:00Z", .items = {common}});
  const MadeBundle two =
      make_bundle(dir / "2", {.name = "two", .created = "2026-01-08T00:00:00Z", .items = {common, other}});
  for (const bool turned : {false, true}) {
    std::vector<VerifiedBundle> bundles;
    for (const MadeBundle* made : {turned ? &two : &one, turned ? &one : &two}) bundles.push_back(verified(*made));
    const Catalogue catalogue = make_catalogue(std::move(bundles));
    CHECK(catalogue.projects.size() == 2);
    CHECK(catalogue.wheel_count() == 2);
    CHECK(catalogue.find_project("demo")->wheels.begin()->second.uploaded == "2026-01-08T00:00:00Z");
  }
}

TEST_CASE("one file name with two contents is a conflict that names both bundles") {
  const TempDir dir;
  const TinyItem changed = wheel_item({.files = {{"demo/__init__.py", "ANSWER = 43\n"}}});
  const MadeBundle one = make_bundle(dir / "1", {.name = "one", .items = {wheel_item({})}});
  const MadeBundle two = make_bundle(dir / "2", {.name = "two", .version = 7, .items = {changed}});
  const Error error = refusal([&] { make_catalogue({verified(one), verified(two)}); });
  CHECK(error.code() == ErrorCode::Conflict);
  for (const std::string part : {"one-1", "two-7", "demo-1.0-py3-none-any.whl"}) CHECK(mentions(error, part));
}

TEST_CASE("a wheel that is carried as a patch is not offered, and the catalogue says why") {
  const TempDir dir;
  TinyItem patch = wheel_item(with_changed_library(20'000));
  patch.encoding = Encoding::Patch;
  patch.patch = make_patch(with_changed_library(20'000), with_library(20'000));
  const MadeBundle delta = make_bundle(dir / "1", {.name = "delta", .items = {patch, wheel_item({.name = "other"})}});
  const Catalogue alone = make_catalogue({verified(delta)});
  CHECK(alone.wheel_count() == 1);
  CHECK(alone.find_project("native") == nullptr);
  REQUIRE(alone.left_out.size() == 1);
  CHECK(alone.left_out[0].english.find("native-1.1") != std::string::npos);
  const MadeBundle whole = make_bundle(dir / "2", {.items = {wheel_item(with_changed_library(20'000))}});
  CHECK(make_catalogue({verified(delta), verified(whole)}).wheel_count() == 2);
}

TEST_CASE("the image that a bundle carries of its environment is a file among its entries, and no wheel") {
  const TempDir dir;
  const std::string bytes(8192, 'i');
  const MadeBundle made = make_bundle(dir / "1", {.items = {wheel_item({}),
                                                            {.path = "environment/image.sqfs",
                                                             .kind = EntryKind::Squashfs,
                                                             .bytes = bytes,
                                                             .placed = false,
                                                             .verity = sha256(as_bytes("its tree"))}}});
  const Catalogue catalogue = make_catalogue({verified(made)});
  CHECK(catalogue.wheel_count() == 1);
  const auto list = entry_list_of(std::make_shared<const VerifiedBundle>(verified(made)));
  REQUIRE(list->find("environment/image.sqfs") != nullptr);
  CHECK(list->sums->find(sha256(as_bytes(bytes)).hex() + "  environment/image.sqfs\n") != std::string::npos);
}

TEST_CASE("what a delta does not carry is not offered, unless another bundle has it") {
  const TempDir dir;
  TinyItem absent = wheel_item({});
  absent.absent = true;
  const MadeBundle delta = make_bundle(dir / "1", {.name = "delta", .items = {absent, wheel_item({.name = "other"})}});
  const Catalogue alone = make_catalogue({verified(delta)});
  CHECK(alone.wheel_count() == 1);
  CHECK(alone.find_project("demo") == nullptr);
  const MadeBundle whole = make_bundle(dir / "2", {.name = "whole"});
  CHECK(make_catalogue({verified(delta), verified(whole)}).wheel_count() == 2);
}

TEST_CASE("a wheel that is stored compressed cannot be served in ranges and is refused") {
  const TempDir dir;
  TinyItem item = wheel_item({});
  item.encoding = Encoding::Zstd;
  const MadeBundle made = make_bundle(dir / "b", {.items = {item}});
  CHECK_REFUSED(make_catalogue({verified(made)}), CannotCheck, "stored compressed");
}

TEST_CASE("a wheel that does not read as one names its bundle and path") {
  const TempDir dir;
  TinyItem item = wheel_item({});
  item.bytes.resize(item.bytes.size() / 2);
  const MadeBundle made = make_bundle(dir / "b", {.items = {item}});
  CHECK_REFUSED(make_catalogue({verified(made)}), Format, "while indexing tiny-1:wheels/demo-1.0-py3-none-any.whl");
}
