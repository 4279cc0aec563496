// SPDX-License-Identifier: Apache-2.0
// Real ELF files, made by the compiler, as they are found inside wheels, an interpreter's tar and programs.
#include "packager/native/native_files.hpp"

#include <doctest/doctest.h>
#include <elf.h>

#include <algorithm>

#include "packager/files/tree.hpp"
#include "packager/host/process.hpp"
#include "packager/native/native_cache.hpp"
#include "packager/pack/contents.hpp"
#include "packager/pack/plan_check.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_wheel.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;

namespace fs = std::filesystem;

namespace {

// A cache and a lock, filled as `lock` and `create` would.
struct Shelf {
  TempDir dir;
  Cache cache{dir / "cache"};
  bundle::Progress progress{nullptr};
  Lock lock;

  Shelf() {
    lock.python = "3.11";
    lock.target = {.arch = "x86_64", .glibc = {2, 99}};
    set_interpreter({});
  }
  // The bytes of a library made with these flags; `code` is C.
  std::string compile(const std::string& name, const std::vector<std::string>& flags, const std::string& code) const {
    write_file(dir / (name + ".c"), code);
    std::vector<std::string> command = {"cc", "-o", (dir / name).string(), (dir / (name + ".c")).string()};
    command.insert(command.end(), flags.begin(), flags.end());
    run_checked(command);
    return read_file(dir / name);
  }
  std::string library(const std::string& name, const std::vector<std::string>& flags = {},
                      const std::string& code = "int one(void) { return 1; }\n") const {
    std::vector<std::string> all = {"-shared", "-fPIC", "-Wl,--no-as-needed", "-Wl,-soname," + name};
    all.insert(all.end(), flags.begin(), flags.end());
    return compile(name, all, code);
  }
  void set_interpreter(const Tree& tree) {
    fs::remove(dir / "interpreter.tar");
    const TreeTar tar = write_tree_tar(tree, dir / "interpreter.tar");
    lock.interpreter.sha256 = tar.sha256;
    cache.adopt(dir / "interpreter.tar", tar.sha256);
  }
  void add_wheel(const std::string& name, const std::map<std::string, std::string>& files) {
    const test::TinyWheel wheel{.name = name, .files = files};
    const std::string bytes = make_wheel(wheel);
    const bundle::Digest digest = bundle::sha256(bundle::as_bytes(bytes));
    write_file(dir / name, bytes);
    cache.adopt(dir / name, digest);
    lock.wheels.push_back({.name = name, .version = "1.0", .file_name = wheel.file_name(), .sha256 = digest});
  }
  NativeFiles read(const Repair& repair = {}) {
    return read_native_files(contents_of(lock), lock.python, cache, repair, progress);
  }
};

}  // namespace

TEST_CASE("ELF files are found wherever they lie in a bundle, at the path where they will be installed") {
  Shelf shelf;
  Tree tree;
  write_file(shelf.dir / "libz.so.1.3", shelf.library("libz.so.1"));
  tree["lib/libz.so.1.3"] = {.source = shelf.dir / "libz.so.1.3"};
  tree["lib/libz.so.1"] = {.text = "libz.so.1.3", .link = true};
  tree["lib/python3.11/os.py"] = {.text = "# os\n"};
  shelf.set_interpreter(tree);
  shelf.add_wheel("demo",
                  {{"demo/__init__.py", "pass\n"},
                   {"demo/_c.abi3.so", shelf.library("_c.abi3.so", {"-L" + shelf.dir.path().string(), "-l:libz.so.1"},
                                                     "const char* name = \"libopened.so.7\";\n")},
                   {"demo-1.0.data/scripts/tool", shelf.compile("tool", {}, "int main(void) { return 0; }\n")}});
  shelf.lock.programs.push_back({.source = "/proc/self/exe", .into = "libexec/self"});
  const NativeFiles found = shelf.read();
  std::vector<std::string> paths;
  for (const NativeFile& file : found.files) paths.push_back(file.path);
  CHECK(paths == std::vector<std::string>{"bin/tool", "lib/libz.so.1.3", "lib/python3.11/site-packages/demo/_c.abi3.so",
                                          "libexec/self"});
  CHECK(found.links == std::map<std::string, std::string>{{"lib/libz.so.1", "lib/libz.so.1.3"}});
  const NativeFile& extension = found.files[2];
  CHECK(extension.owner == "demo-1.0-py3-none-any.whl");
  CHECK(extension.from_wheel);
  CHECK(extension.elf.needed.front() == "libz.so.1");
  CHECK(std::count(extension.names.begin(), extension.names.end(), "libopened.so.7") == 1);
  CHECK_FALSE(found.files[0].elf.interpreter.empty());
  CHECK(found.files[3].owner == "the program libexec/self");
}

TEST_CASE("objects for a linker and code for GPUs are no business of the dynamic linker") {
  Shelf shelf;
  std::string cubin = shelf.library("libcode.so");
  cubin[18] = static_cast<char>(190);  // e_machine: EM_CUDA
  std::string amd = cubin;
  amd[7] = 64;  // ELFOSABI_AMDGPU_HSA
  shelf.add_wheel("demo", {{"demo/a.o", shelf.compile("a.o", {"-c"}, "int a;\n")},
                           {"demo/kernel.cubin", cubin},
                           {"demo/kernel.hsaco", amd},
                           {"demo/short",
                            "\x7f"
                            "EL"}});
  CHECK(shelf.read().files.empty());
}

TEST_CASE("a broken ELF file is kept with its fault, and a digest that does not hold is an error") {
  Shelf shelf;
  shelf.add_wheel("demo", {{"demo/cut.so", shelf.library("cut.so").substr(0, 200)}});
  const NativeFiles found = shelf.read();
  REQUIRE(found.files.size() == 1);
  CHECK_FALSE(found.files[0].fault.empty());

  const test::TinyWheel bad{.name = "bad",
                            .files = {{"bad/x.so", shelf.library("x.so")}},
                            .record_digests = {{"bad/x.so", "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"}}};
  const std::string bytes = make_wheel(bad);
  write_file(shelf.dir / "bad", bytes);
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes(bytes));
  shelf.cache.adopt(shelf.dir / "bad", digest);
  shelf.lock.wheels.push_back({.name = "bad", .version = "1.0", .file_name = bad.file_name(), .sha256 = digest});
  CHECK_REFUSED(shelf.read(), Digest, "differs from its RECORD");
}

TEST_CASE("what was read of a wheel that nobody hashed is believed while that lies there untouched") {
  Shelf shelf;
  const test::TinyWheel tiny{.name = "demo", .files = {{"demo/x.so", shelf.library("x.so")}}};
  shelf.add_wheel("demo", tiny.files);
  const bundle::Digest sha256 = shelf.lock.wheels[0].sha256;
  const fs::path wheel = shelf.cache.path(sha256),
                 final = shelf.cache.root() / "native" / (sha256.hex() + "-python3.11.4");
  const fs::path unconfirmed = fs::path(final).concat(".unconfirmed");
  CHECK(shelf.read().files.size() == 1);
  CHECK_FALSE(fs::exists(final));
  REQUIRE(fs::exists(unconfirmed));
  const std::string bytes = read_file(wheel), note = read_file(unconfirmed);
  CHECK(shelf.read().files.size() == 1);
  CHECK(read_file(unconfirmed) == note);
  SUBCASE("it is confirmed: that holds for the digest, whatever lies there") {
    NativeCache(shelf.cache, "3.11").confirm(sha256);
    CHECK(fs::exists(final));
    CHECK_FALSE(fs::exists(unconfirmed));
    write_file(wheel, "no zip");
    CHECK(shelf.read().files.size() == 1);
  }
  SUBCASE("another wheel lies there: it is read, and the first note is never confirmed") {
    write_file(wheel, test::make_wheel({.name = "demo", .files = {{"demo/x.py", "X = 1\n"}}}));
    NativeCache(shelf.cache, "3.11").confirm(sha256);
    CHECK_FALSE(fs::exists(final));
    CHECK(shelf.read().files.empty());
  }
  SUBCASE("the same bytes, written anew: they are read once more") {
    write_file(wheel, bytes);
    CHECK(shelf.read().files.size() == 1);
    CHECK(read_file(unconfirmed) != note);
  }
  SUBCASE("the note is damaged") {
    std::string other = note;
    other[other.size() / 2] ^= 1;
    write_file(unconfirmed, other);
    CHECK(shelf.read().files.size() == 1);
    CHECK(read_file(unconfirmed) == note);
  }
  SUBCASE("others may write into the cache: it is not believed") {
    fs::permissions(shelf.cache.root(), fs::perms::others_write, fs::perm_options::add);
    write_file(unconfirmed, "");
    CHECK_FALSE(NativeCache(Cache(shelf.cache.root()), "3.11").read(sha256, "demo"));
  }
}

TEST_CASE("what was read of a wheel is kept, and read again when that was damaged") {
  Shelf shelf;
  shelf.library("liba.so");
  shelf.add_wheel(
      "demo",
      {{"demo/x.so", shelf.library("x.so", {"-L" + shelf.dir.path().string(), "-la", "-lm", "-Wl,-rpath,$ORIGIN/libs"},
                                   "#include <math.h>\nconst char* name = \"libopened.so\";\n"
                                   "double f(double x) { return pow(x, x); }\n")}});
  const NativeFile first = shelf.read().files.at(0);
  const auto confirm = [&] { NativeCache(shelf.cache, "3.11").confirm(shelf.lock.wheels[0].sha256); };
  confirm();
  const fs::path wheel = shelf.cache.path(shelf.lock.wheels[0].sha256);
  std::vector<fs::path> kept;
  for (const auto& entry : fs::directory_iterator(shelf.cache.root() / "native"))
    if (entry.path().filename().string().starts_with(shelf.lock.wheels[0].sha256.hex())) kept.push_back(entry.path());
  REQUIRE(kept.size() == 1);

  const auto same = [&](const NativeFile& other) {
    CHECK(other.path == first.path);
    CHECK(other.owner == first.owner);
    CHECK(other.from_wheel);
    CHECK(other.names == first.names);
    CHECK(other.elf.arch == first.elf.arch);
    CHECK(other.elf.type == first.elf.type);
    CHECK(other.elf.needed == first.elf.needed);
    CHECK(other.elf.runpath + other.elf.rpath == "$ORIGIN/libs");
    CHECK(other.elf.soname == "x.so");
    CHECK(other.elf.wanted_versions == first.elf.wanted_versions);
    CHECK(other.symbols.defines(bundle::symbol_hash("f")));
    CHECK(other.symbols == first.symbols);
    CHECK_FALSE(other.elf.executable_stack);
  };
  const std::string bytes = read_file(wheel);
  SUBCASE("the wheel itself is not opened for it") {
    write_file(wheel, "no zip");
    same(shelf.read().files.at(0));
  }
  SUBCASE("damaged") {
    std::string text = read_file(kept[0]);
    text[text.size() / 2] ^= 1;
    write_file(kept[0], text);
    same(shelf.read().files.at(0));
    confirm();
    CHECK(read_file(kept[0]) != text);
  }
  SUBCASE("cut short") {
    write_file(kept[0], "");
    same(shelf.read().files.at(0));
  }
  SUBCASE("nothing is kept of a wheel that cannot be read to its end") {
    fs::remove(kept[0]);
    write_file(wheel, bytes + "x");
    CHECK_REFUSED(shelf.read(), Format, "");
    confirm();
    CHECK_FALSE(fs::exists(kept[0]));
  }
}

TEST_CASE("what was read of the interpreter is kept too, but its links are read each time") {
  Shelf shelf;
  write_file(shelf.dir / "libz.so.1.3", shelf.library("libz.so.1"));
  shelf.set_interpreter({{"lib/libz.so.1.3", {.source = shelf.dir / "libz.so.1.3"}},
                         {"lib/libz.so.1", {.text = "libz.so.1.3", .link = true}}});
  const fs::path kept = shelf.cache.root() / "native" / (shelf.lock.interpreter.sha256.hex() + "-python3.11.4");
  const NativeFiles first = shelf.read();
  REQUIRE(fs::is_regular_file(kept));
  const NativeFiles second = shelf.read();
  REQUIRE(second.files.size() == 1);
  CHECK(second.files[0].path == "lib/libz.so.1.3");
  CHECK(second.files[0].owner == "the interpreter");
  CHECK_FALSE(second.files[0].from_wheel);
  CHECK(second.files[0].elf.soname == "libz.so.1");
  CHECK(second.links == first.links);

  // It is what is kept that counts, and only bytes with the locked digest are kept.
  write_file(kept, bundle::sha256(bundle::as_bytes("[]")).hex() + "\n[]");
  CHECK(shelf.read().files.empty());
  fs::remove(kept);
  const fs::path tar = shelf.cache.path(shelf.lock.interpreter.sha256);
  std::string bytes = read_file(tar);
  bytes[bytes.find("libz.so.1", bytes.find("\x7f"
                                           "ELF"))] = 'L';
  write_file(tar, bytes);
  CHECK(shelf.read().files.at(0).elf.soname == "Libz.so.1");
  CHECK_FALSE(fs::exists(kept));
}

TEST_CASE("names that would disturb a terminal are a fault of their file") {
  Shelf shelf;
  shelf.add_wheel("demo", {{"demo/x.so", shelf.library("x\x1b[2J.so")}});
  const NativeFile file = shelf.read().files.at(0);
  CHECK(file.fault.find("not plain text") != std::string::npos);
  CHECK(file.elf.soname.empty());
}

TEST_CASE("nothing is left in the cache but what is kept") {
  Shelf shelf;
  shelf.add_wheel("demo", {{"demo/x.so", shelf.library("x.so")}});
  shelf.read();
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(shelf.cache.root())) left.insert(entry.path().filename().string());
  CHECK(left == std::set<std::string>{"CACHEDIR.TAG", "native", "parts", "scratch", "sha256"});
}

TEST_CASE("a real library's faults are seen: what it needs, its stack, its floor") {
  Shelf shelf;
  shelf.library("libgone.so.3");
  shelf.add_wheel(
      "demo", {{"demo/_c.abi3.so", shelf.library("_c.abi3.so", {"-L" + shelf.dir.path().string(), "-l:libgone.so.3"})},
               {"demo/stack.so", shelf.library("stack.so", {"-Wl,-z,execstack"})}});
  const bundle::Error error = test::refusal([&] {
    ToldWarnings told(shelf.cache, bundle::sha256({}));
    check_native(plan_pack(shelf.lock, contents_of(shelf.lock), {}, shelf.cache), shelf.cache, {}, told,
                 shelf.progress);
  });
  CHECK(error.code() == bundle::ErrorCode::Missing);
  CHECK(test::mentions(error, "2 finding(s)"));
  CHECK(test::mentions(error,
                       "libgone.so.3 is not in the bundle; wanted by demo/_c.abi3.so of demo-1.0-py3-none-any.whl"));
  CHECK(test::mentions(error, "demo/stack.so of demo-1.0-py3-none-any.whl asks for an executable stack"));
}
