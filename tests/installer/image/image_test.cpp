// SPDX-License-Identifier: Apache-2.0
// Images of environments: the same bytes from a bundle and from each prefix that it was installed into, and in them
// what apply made there.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include "installer/generations/generation.hpp"
#include "installer/image/image_tree.hpp"
#include "installer/image/make_image.hpp"
#include "installer/prefix/trust_store.hpp"
#include "tests/installer/host_python.hpp"
#include "tests/installer/program.hpp"
#include "tests/support/shown_image.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

MadeImage image_of(const Prefix& prefix, const fs::path& file, unsigned threads = 2) {
  Disk disk;
  bundle::Progress silent(nullptr);
  return image_of_prefix(prefix, {.file = file, .threads = threads}, disk, silent);
}

MadeImage image_of(const MadeBundle& made, const fs::path& file, unsigned threads = 2) {
  Disk disk;
  bundle::Progress silent(nullptr);
  const bundle::VerifiedBundle verified = bundle::verify(bundle::open(made.folder), made.trusted, kNow);
  return image_of_bundle(verified, {.file = file, .threads = threads}, disk, silent);
}

// A module with a large part, and an interpreter that is the host's.
TinyBundle python_bundle() {
  TinyBundle tiny = three_kinds();
  tiny.items.push_back(borrowed_python());
  tiny.items.push_back(wheel_item({.name = "large",
                                   .files = {{"large/__init__.py", "from .table import ROWS\n"},
                                             {"large/table.py", "ROWS = '''" + numbers_text(3, 60'000) + "'''\n"},
                                             {"large/include/large.h", "int large(void);\n"}}}));
  return tiny;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::directory_entry& there : fs::directory_iterator(folder)) names.insert(there.path().filename());
  return names;
}

}  // namespace

TEST_CASE("an image has the same bytes from two prefixes and from the bundle, with any number of threads") {
  const Site first, second;
  const MadeBundle made = first.make(python_bundle());
  first.apply(made);
  ApplyOptions elsewhere = second.options(made);
  elsewhere.prefix = Prefix(second.dir / "another/longer prefix");
  elsewhere.now += std::chrono::hours(24);
  elsewhere.compile_bytecode = false;
  second.apply(elsewhere);
  const MadeImage one = image_of(first.prefix(), first.dir / "one", 1);
  const MadeImage two = image_of(elsewhere.prefix, second.dir / "two", 7);
  const MadeImage three = image_of(made, first.dir / "three");
  const std::string bytes = read_file(one.file);
  CHECK(bytes.size() == one.size);
  CHECK(bytes == read_file(two.file));
  CHECK(bytes == read_file(three.file));
  CHECK(one.files == three.files);
  CHECK(one.identity == three.identity);
}

TEST_CASE("a mounted image shows exactly what apply made") {
  const Site site;
  const MadeBundle made = site.make(python_bundle());
  site.apply(made);
  const MadeImage image = image_of(site.prefix(), site.dir / "image");
  const ShownImage shown(image.file);
  if (!shown) return;
  DiskImage expected = without_twins(read_image(site.current()));
  CHECK(expected.erase("generation.json") == 1);
  CHECK((without_twins(read_image(shown.path())) == expected));
  std::uint64_t files = 0;
  for (const auto& [path, there] : expected) files += there.node.type == DiskNode::Type::File;
  CHECK(image.files == files);
}

TEST_CASE("programs run and modules are imported from a mounted image") {
  if (!host_python_is_there()) return;
  const Site site;
  const MadeImage image = image_of(site.make(python_bundle()), site.dir / "image");
  const ShownImage shown(image.file);
  if (!shown) return;
  const Ran imported = run_in_shell((shown.path() / "bin/python3").string() +
                                    " -c 'import large; print(large.ROWS[:5], large.__file__)'");
  CHECK(imported.status == 0);
  CHECK(imported.output.find((shown.path() / "lib/python3.11/site-packages/large").string()) != std::string::npos);
  CHECK(run_in_shell((shown.path() / "bin/alias").string()).output == "tool\n");
}

TEST_CASE("an image begins with the interpreter, then has each library in one piece, and what is read late last") {
  Layout layout;
  const auto put = [&](const std::string& path, const std::string& owner) {
    Place place;
    place.type = Place::Type::Text;
    place.text = path;
    place.origin = std::make_shared<const Place::Origin>(Place::Origin{.owner = owner, .item = "", .wheel = true});
    layout[path] = place;
  };
  put("bin/python3", "trees/python");
  put("lib/python3.11/os.py", "trees/python");
  put("lib/python3.11/test/test_os.py", "trees/python");
  put("lib/python3.11/site-packages/b/__init__.py", "wheels/b");
  put("lib/python3.11/site-packages/b/include/b.h", "wheels/b");
  put("lib/python3.11/site-packages/a/__init__.py", "wheels/z");
  put("lib/python3.11/site-packages/c.libs/libb.so", "wheels/b");
  const bundle::ImageTree tree = image_tree_of(layout);
  std::vector<std::string> paths;
  for (const std::size_t index : image_order_of(layout, tree, "bin/python3")) paths.push_back(tree[index].path);
  CHECK(paths == std::vector<std::string>{
                     "bin/python3", "lib/python3.11/os.py", "lib/python3.11/site-packages/b/__init__.py",
                     "lib/python3.11/site-packages/c.libs/libb.so", "lib/python3.11/site-packages/a/__init__.py",
                     "lib/python3.11/test/test_os.py", "lib/python3.11/site-packages/b/include/b.h"});
}

TEST_CASE("a file that was changed since it was unpacked is named, and no image is left") {
  const Site site;
  site.apply(site.make(python_bundle()));
  fs::path changed;
  for (const fs::directory_entry& there : fs::recursive_directory_iterator(site.prefix().store()))
    if (there.path().filename() == "table.py") changed = there.path();
  fs::permissions(changed, fs::perms::owner_write, fs::perm_options::add);
  flip_bit(changed, 1000);
  fs::create_directory(site.dir / "out");
  CHECK_REFUSED(image_of(site.prefix(), site.dir / "out/image"), Digest, changed.string());
  CHECK(names_in(site.dir / "out").empty());
}

TEST_CASE("no image is made of what the site's root has withdrawn") {
  const Site site;
  const MadeBundle made = site.make(python_bundle());
  site.apply(made);
  const bundle::Root next =
      next_root(bundle::parse_root(one_key_root(site.key).payload, "root 1"), [&](bundle::Root& root) {
        root.revoked_bundles[bundle::open(made.folder).seal.manifest.digest()] = {.date = "2026-02-01T00:00:00Z",
                                                                                  .reason = "a wrong wheel"};
      });
  write_file(site.dir / "next.json", write_envelope(signed_root(next, {&site.key})));
  Disk disk;
  update_root(site.prefix(), disk, {site.dir / "next.json"});
  fs::create_directory(site.dir / "out");
  CHECK_REFUSED(image_of(site.prefix(), site.dir / "out/image"), Revoked, "a wrong wheel");
  CHECK(names_in(site.dir / "out").empty());
}

TEST_CASE("an image takes no name that something has, and removes what a killed run left") {
  const Site site;
  site.apply(site.make(three_kinds()));
  fs::create_directories(site.dir / "out/.sealift-image-0123456789abcdef/store");
  std::ofstream(site.dir / "out/image") << "mine";
  CHECK_REFUSED(image_of(site.prefix(), site.dir / "out/image"), Conflict, "not replaced");
  CHECK(read_file(site.dir / "out/image") == "mine");
  image_of(site.prefix(), site.dir / "out/other");
  CHECK(names_in(site.dir / "out") == std::set<std::string>{"image", "other", "other.chunks"});
}

TEST_CASE("an image on a disk that is full leaves nothing") {
  class Full final : public Disk {
   public:
    bool link(const FileName&, const FileName& to) override { bundle::throw_errno("no room", to.path(), ENOSPC); }
  };
  const Site site;
  const MadeBundle made = site.make(python_bundle());
  site.apply(made);
  fs::create_directory(site.dir / "out");
  bundle::Progress silent(nullptr);
  Full full;
  CHECK_REFUSED(image_of_prefix(site.prefix(), {.file = site.dir / "out/image"}, full, silent), Space, "no room");
  const bundle::VerifiedBundle verified = bundle::verify(bundle::open(made.folder), made.trusted, kNow);
  FullDisk short_of_room(100'000);
  CHECK_REFUSED(image_of_bundle(verified, {.file = site.dir / "out/image"}, short_of_room, silent), Space, "");
  SmallDisk small({.bytes = 10'000, .inodes = 1'000'000});
  CHECK_REFUSED(image_of_bundle(verified, {.file = site.dir / "out/image"}, small, silent), Space,
                "nothing was written");
  CHECK(names_in(site.dir / "out").empty());
}

TEST_CASE("an image of a delta names what is not carried") {
  const Site site;
  TinyBundle delta = three_kinds();
  delta.items.push_back(wheel_item({.name = "left"}));
  delta.items.back().absent = true;
  CHECK_REFUSED(image_of(site.make(delta), site.dir / "image"), Missing, "left");
}

TEST_CASE("the program makes the same image of a bundle and of a prefix, behind the gate") {
  const Site site;
  const MadeBundle made = site.make(python_bundle());
  site.apply(made);
  const std::string folder = made.folder, prefix = site.prefix().folder(), one = site.dir / "one",
                    two = site.dir / "two";
  const Outcome of_bundle = run(site.dir, {"image", folder, "--fingerprint", made.fingerprint(), "-o", one, "--json"});
  CHECK(of_bundle.exit == 0);
  CHECK(of_bundle.out.find("\"image\":\"" + one + "\"") != std::string::npos);
  const Outcome of_prefix = run(site.dir, {"image", prefix, "-o", two});
  CHECK(of_prefix.exit == 0);
  CHECK(of_prefix.out.find("as one image") != std::string::npos);
  CHECK(read_file(one) == read_file(two));
  // Nobody's word for the bundle, another's, options that a prefix has no use for, and no place.
  CHECK(run(site.dir, {"image", folder, "-o", site.dir / "three"}).exit != 0);
  const std::string other = "sha256:" + std::string(64, '0');
  CHECK(run(site.dir, {"image", folder, "--fingerprint", other, "-o", site.dir / "three"}).exit != 0);
  CHECK(run(site.dir, {"image", prefix, "--fingerprint", made.fingerprint(), "-o", site.dir / "three"}).exit == 2);
  CHECK(run(site.dir, {"image", folder, "--fingerprint", made.fingerprint()}).exit == 2);
  // With a hash tree; a tree that is there is not replaced, and then no image is left.
  const std::string four = site.dir / "four";
  const Outcome with_tree = run(site.dir, {"image", prefix, "-o", four, "--verity", "--json"});
  CHECK(with_tree.exit == 0);
  CHECK(bundle::parse_json(with_tree.out, "stdout").at("root").get<std::string>().size() == 64);
  CHECK(fs::file_size(four + ".verity") >= 8192);
  write_file(site.dir / "five.verity", "mine");
  CHECK(run(site.dir, {"image", prefix, "-o", site.dir / "five", "--verity"}).exit == 10);
  CHECK(read_file(site.dir / "five.verity") == "mine");
  CHECK(!fs::exists(site.dir / "five"));
  CHECK(!fs::exists(site.dir / "three"));
}
