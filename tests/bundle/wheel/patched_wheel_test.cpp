// SPDX-License-Identifier: Apache-2.0
// Patches of wheels: what they leave out, what is made of them, and what is refused.
#include "sealift/bundle/wheel/patched_wheel.hpp"

#include <functional>

#include "tests/support/refusal.hpp"
#include "tests/support/tiny_patch.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

constexpr std::size_t kSmall = 40'000;

// Every file of `wheel`, made of its patch and of the files of `base`: what an installer does.
std::map<std::string, std::string> rebuilt(const std::string& patch, const TinyWheel& wheel, const TinyWheel& base) {
  MemorySource stored = memory_source(patch, "patch");
  PatchedWheel source(stored, make_wheel(wheel).size());
  std::map<Digest, std::string> had;
  for (const auto& [path, bytes] : base.files) had.emplace(sha256(as_bytes(bytes)), bytes);
  Wheel read(source, wheel.file_name());
  std::map<std::string, std::string> files;
  for (const WheelFile& file : read.files()) {
    std::string& bytes = files[file.path];
    const ByteSink sink = [&](ByteView piece) { bytes += as_text(piece); };
    if (const std::optional<Digest> from = source.base_of(file))
      source.rebuild(file, as_bytes(had.at(*from)), sink);
    else
      Wheel::unpack(source, file, sink);
  }
  return files;
}

Error refused(const std::string& patch, const TinyWheel& wheel, const TinyWheel& base) {
  return refusal([&] { rebuilt(patch, wheel, base); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a library of three megabytes in which a few bytes changed travels in kilobytes, and comes out whole") {
  const TinyWheel base = with_library(), wheel = with_changed_library();
  WheelPatch made;
  const std::string patch = make_patch(wheel, base, &made);
  CHECK(patch.size() < 4000);
  CHECK(made.size == patch.size());
  CHECK(made.sha256 == sha256(as_bytes(patch)));
  CHECK(made.same == 1);
  CHECK(made.patched == 1);
  const auto files = rebuilt(patch, wheel, base);
  for (const auto& [path, bytes] : wheel.files) CHECK(files.at(path) == bytes);
  CHECK(files.size() == wheel.files.size() + 2);
  CHECK(make_patch(wheel, base) == patch);  // the same every time
}

TEST_CASE("a patch of several pieces, each of which may refer to all of the base, comes out whole") {
  const std::string rare = noise(300'000), common((std::size_t{40} << 20) + 5, 'c');
  TinyWheel base{.name = "large", .files = {{"large.bin", rare + common}}}, wheel = base;
  wheel.version = "2.0";
  wheel.files["large.bin"] = common + "between" + rare;  // further away than a window
  const std::string patch = make_patch(wheel, base);
  CHECK(patch.size() < 20'000);
  CHECK((rebuilt(patch, wheel, base).at("large.bin") == wheel.files["large.bin"]));
}

TEST_CASE("a file that moved is left out, and a wheel that has nothing in common with its base is not patched") {
  TinyWheel base = with_library(kSmall), wheel = base;
  wheel.version = "2.0";
  wheel.files["native/other/lib.so"] = std::move(wheel.files["native/lib.so"]);
  wheel.files.erase("native/lib.so");
  const std::string patch = make_patch(wheel, base);
  CHECK(patch.size() < 4000);
  CHECK(rebuilt(patch, wheel, base) == rebuilt(patch, wheel, base));
  const TinyWheel stranger{.name = "native", .version = "3.0", .files = {{"x.py", std::string(500, 'x')}}};
  CHECK(make_patch(stranger, base).empty());
}

TEST_CASE("a file about which RECORD is wrong is carried, so that the wheel can be read without its base") {
  const TinyWheel base = with_library(kSmall);
  TinyWheel wheel = base;
  wheel.version = "2.0";
  wheel.record_sizes["native/lib.so"] = "7";
  wheel.files["native/other.so"] = wheel.files.at("native/lib.so");
  const std::string patch = make_patch(wheel, base);
  REQUIRE_FALSE(patch.empty());
  CHECK(rebuilt(patch, wheel, base).at("native/lib.so") == wheel.files.at("native/lib.so"));
}

TEST_CASE("what an installer rewrites is not built on, and what readers look into is carried") {
  TinyWheel base = with_library(kSmall);
  base.files["native-1.0.data/scripts/run"] = "#!python\n" + std::string(300, '#') + "\n";
  base.files["native.pth"] = "# " + std::string(300, 'p') + "\n";
  TinyWheel wheel = base;
  wheel.version = "1.1";
  wheel.files.erase("native-1.0.data/scripts/run");
  wheel.files["native-1.1.data/scripts/run"] = base.files.at("native-1.0.data/scripts/run");
  wheel.files["native/copy.py"] = base.files.at("native-1.0.data/scripts/run");
  const std::string patch = make_patch(wheel, base);
  MemorySource stored = memory_source(patch, "patch");
  PatchedWheel source(stored, make_wheel(wheel).size());
  Wheel read(source, wheel.file_name());
  for (const WheelFile& file : read.files()) {
    CAPTURE(file.path);
    CHECK(source.base_of(file).has_value() == (file.path == "native/lib.so" || file.path == "native/table.py"));
  }
}

TEST_CASE("a wheel that lies in RECORD is not built on") {
  TinyWheel base = with_library(kSmall);
  base.record_digests["native/lib.so"] = "sha256=" + to_base64(sha256(as_bytes("x")).bytes, Base64::UrlNoPad);
  CHECK_REFUSED(make_patch(with_changed_library(kSmall), base), Digest, "lib.so");
}

TEST_CASE("a patch with one fault is refused for it, before anything large is allocated") {
  const TinyWheel base = with_library(kSmall), wheel = with_changed_library(kSmall);
  const std::string good = make_patch(wheel, base);
  const std::size_t size = make_wheel(wheel).size();
  REQUIRE(rebuilt(good, wheel, base).at("native/lib.so") == wheel.files.at("native/lib.so"));
  const TinyPatch parts(good);
  REQUIRE(TinyPatch(parts.text()).lines == parts.lines);
  struct Fault {
    const char* name;
    std::function<std::string()> make;
    const char* word;
  };
  const auto with = [&](const std::function<void(TinyPatch&)>& change) {
    return [&parts, change] {
      TinyPatch patch = parts;
      change(patch);
      return patch.text();
    };
  };
  // The lines, in the archive's order: __init__.py is small and in the head, lib.so is patched, table.py is the same.
  const std::size_t patch_line = parts.lines.find("patch "), same_line = parts.lines.find("same ");
  REQUIRE(patch_line < same_line);
  const std::string patched = parts.lines.substr(patch_line, same_line - patch_line);
  const std::string frame = patched.substr(patched.rfind(' ') + 1);  // "SIZE\n"
  const std::string begin = patched.substr(6, patched.find(' ', 6) - 6);
  const std::string digest = sha256(as_bytes(base.files.at("native/lib.so"))).hex();
  const std::string other = sha256(as_bytes(base.files.at("native/__init__.py"))).hex();
  const Fault faults[] = {
      {"empty", [] { return std::string("x"); }, "begin as a patch"},
      {"another magic", [&] { return replaced(good, "patch-v1", "patch-v2"); }, "begin as a patch"},
      {"a head of 17 MiB", [&] { return replaced(good, "v1 ", "v1 17825792"); }, "first line"},
      {"a head of 2^60", [&] { return replaced(good, "v1 ", "v1 1152921504606846976"); }, "first line"},
      {"a frame longer than the entry", [&] { return replaced(good, "\n", "9999\n"); }, "first line"},
      {"a head that holds more", [&] { return replaced(good, "v1 ", "v1 -"); }, "first line"},
      {"cut short", [&] { return good.substr(0, good.size() - 1); }, "cut short"},
      {"bytes behind it", [&] { return good + "x"; }, "follow its last member"},
      {"an unknown kind", with([](TinyPatch& p) { p.lines = replaced(p.lines, "same", "link"); }), "list of members"},
      {"no end of the list", with([](TinyPatch& p) { p.lines.pop_back(), p.bones = ""; }), "no end"},
      {"no number", with([&](TinyPatch& p) { p.lines = replaced(p.lines, begin, "1x"); }), "where a wheel"},
      {"a leading zero", with([&](TinyPatch& p) { p.lines = replaced(p.lines, begin, "0" + begin); }), "where a wheel"},
      {"a number of 16 digits", with([&](TinyPatch& p) { p.lines = replaced(p.lines, begin, "1000000000000000"); }),
       "where a wheel"},
      {"a member behind the end", with([&](TinyPatch& p) { p.lines = replaced(p.lines, begin, "99999999"); }),
       "where a wheel"},
      {"members in another order", with([&](TinyPatch& p) { p.lines = p.lines.substr(patched.size()) + patched; }),
       "where a wheel"},
      {"a member twice", with([&](TinyPatch& p) { p.lines = patched + p.lines; }), "where a wheel"},
      {"an archive that is too short", with([](TinyPatch& p) { p.bones.pop_back(); }), "not as large"},
      {"an archive that is too long", with([](TinyPatch& p) { p.bones.push_back('x'); }), "not as large"},
      {"half a digest", with([&](TinyPatch& p) { p.lines = replaced(p.lines, digest, "abcd"); }), "list of members"},
      {"no frame", with([&](TinyPatch& p) { p.lines = replaced(p.lines, " " + frame, " \n"); }), "cut short"},
      {"a frame of no bytes",
       with([&](TinyPatch& p) { p.lines = replaced(p.lines, " " + frame, " 0\n"), p.bodies = ""; }), "not complete"},
      {"two frames for one piece", with([&](TinyPatch& p) {
         p.lines = replaced(p.lines, " " + frame, " " + replaced(frame, "\n", "") + "," + frame), p.bodies += p.bodies;
       }),
       "more or fewer frames"},
      {"a frame that no zstd made", with([](TinyPatch& p) { p.bodies[1] ^= 1; }), "does not start"},
      {"a frame of another base", with([&](TinyPatch& p) { p.lines = replaced(p.lines, digest, other); }), "patch"},
      {"a frame that gives more", with([&](TinyPatch& p) {
         const Bytes bomb = zstd_patch(as_bytes(base.files.at("native/lib.so")), as_bytes(std::string(30 << 20, '\0')));
         p.bodies = as_text(bomb);
         p.lines = replaced(p.lines, " " + frame, " " + std::to_string(bomb.size()) + "\n");
       }),
       "more comes out"},
      {"a frame with a window of 128 MiB", with([&](TinyPatch& p) {
         std::string wide("\x28\xb5\x2f\xfd\xc4\x88", 6);    // a size of eight bytes, a checksum, a window of 2^27
         const std::uint64_t said = std::uint64_t{1} << 20;  // more than fits into one piece of output
         for (int i = 0; i < 8; ++i) wide.push_back(static_cast<char>(said >> 8 * i & 255));
         wide += std::string("\x01\x00\x00none", 7);
         p.bodies = wide;
         p.lines = replaced(p.lines, " " + frame, " " + std::to_string(wide.size()) + "\n");
       }),
       "memory"},
      {"another file as it is", with([&](TinyPatch& p) {
         const std::string range = patched.substr(6, patched.find(' ', patched.find(' ', 6) + 1) - 6);
         p.lines = replaced(p.lines, patched, "same " + range + "\n"), p.bodies = "";
       }),
       ""},
  };
  for (const Fault& fault : faults) {
    CAPTURE(std::string(fault.name));
    const std::string bytes = fault.make();
    const bool absent_base = fault.word[0] == '\0';
    try {
      rebuilt(bytes, wheel, base);
      FAIL("accepted");
    } catch (const Error& error) {
      INFO(std::string(error.what()));
      CHECK((error.code() == ErrorCode::Format || error.code() == ErrorCode::Digest));
      CHECK(mentions(error, fault.word));
    } catch (const std::out_of_range&) {  // the base has no such file: the installer's own answer is tested there
      CHECK(absent_base);
    }
  }
  MemorySource stored = memory_source(good, "patch");
  CHECK_REFUSED(PatchedWheel(stored, size - 1), Format, "");
  CHECK_REFUSED(PatchedWheel(stored, 0), Format, "");
}

TEST_CASE("what a patch must carry cannot be left to the store") {
  const TinyWheel base = with_library(kSmall), wheel = with_changed_library(kSmall);
  const std::string whole = make_wheel(wheel);
  for (const char* word : {"Metadata-Version", "Wheel-Version", "native/__init__.py,sha256"}) {
    CAPTURE(word);
    TinyPatch patch(make_patch(wheel, base));
    const std::size_t at = whole.find(word), bone = patch.bones.find(word);
    REQUIRE(at != whole.npos);
    const std::string line = "same " + std::to_string(at) + " 20\n";
    const bool first = at < std::stoul(patch.lines.substr(patch.lines.find(' ')));
    patch.lines = first ? line + patch.lines : patch.lines + line;
    patch.bones.erase(bone, 20);
    CHECK(mentions(refused(patch.text(), wheel, base), "left to the store"));
  }
}

TEST_CASE("a patch on another base than its own is refused by its digest") {
  const TinyWheel base = with_library(kSmall), wheel = with_changed_library(kSmall);
  const std::string patch = make_patch(wheel, base);
  MemorySource stored = memory_source(patch, "patch");
  PatchedWheel source(stored, make_wheel(wheel).size());
  Wheel read(source, wheel.file_name());
  for (const WheelFile& file : read.files()) {
    if (!source.base_of(file)) continue;
    CAPTURE(file.path);
    std::string changed = base.files.at(file.path);
    changed[changed.size() / 4] ^= 1;
    std::uint64_t given = 0;
    const ByteSink sink = [&](ByteView piece) { given += piece.size(); };
    for (const std::string& other : {changed, changed + "x", std::string()}) {
      const Error error = refusal([&] { source.rebuild(file, as_bytes(other), sink); });
      CHECK((error.code() == ErrorCode::Digest || error.code() == ErrorCode::Format));
    }
    CHECK(given <= 3 * file.member.size);
  }
}
