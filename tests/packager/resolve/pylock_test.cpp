// SPDX-License-Identifier: Apache-2.0
// What is taken from a pylock: the best wheel of each package, or the source to build it from.
#include "packager/resolve/pylock.hpp"

#include "packager/resolve/local_files.hpp"

#include <doctest/doctest.h>

#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::packager;

namespace {

const bundle::Target kTarget{.arch = "x86_64", .glibc = {2, 36}};
const std::string kDigest(64, 'a');

std::string wheel(const std::string& file) {
  return "{ url = \"https://example.invalid/" + file + "\", hashes = { sha256 = \"" + kDigest + "\" } }";
}
std::string package(const std::string& name, const std::string& wheels) {
  return "[[packages]]\nname = \"" + name + "\"\nversion = \"1.0\"\n" + wheels + "\n";
}
std::string pylock(const std::string& packages) {
  return "lock-version = \"1.0\"\ncreated-by = \"uv\"\n" + packages;
}
std::vector<LockedWheel> choose(const std::string& packages) {
  return choose_packages(pylock(packages), "/evidence", "3.11", kTarget).wheels;
}
std::vector<SourcePackage> sources(const std::string& packages, const RequirementHashes& allowed = {}) {
  return choose_packages(pylock(packages), "/evidence", "3.11", kTarget, allowed).sources;
}
std::string sdist(const std::string& digest = kDigest) {
  return "sdist = { url = \"https://example.invalid/x-1.0.tar.gz\", hashes = { sha256 = \"" + digest + "\" } }\n";
}

}  // namespace

TEST_CASE("the best of several wheels is locked, with name, url and digest") {
  const auto wheels =
      choose(package("Demo_Pkg", "wheels = [" + wheel("demo_pkg-1.0-py3-none-any.whl") + ", " +
                                     wheel("demo_pkg-1.0-cp311-cp311-manylinux_2_17_x86_64.whl") + ", " +
                                     wheel("demo_pkg-1.0-cp311-cp311-manylinux_2_34_x86_64.whl") + ", " +
                                     wheel("demo_pkg-1.0-cp311-cp311-manylinux_2_39_x86_64.whl") + "]"));
  REQUIRE(wheels.size() == 1);
  CHECK(wheels[0].name == "demo-pkg");
  CHECK(wheels[0].file_name == "demo_pkg-1.0-cp311-cp311-manylinux_2_34_x86_64.whl");
  CHECK(wheels[0].url == "https://example.invalid/demo_pkg-1.0-cp311-cp311-manylinux_2_34_x86_64.whl");
  CHECK(wheels[0].sha256.hex() == kDigest);
}

TEST_CASE("of builds of one release the highest is locked, and a better tag goes before any build") {
  const auto locked = [](std::vector<std::string> tags) {
    std::string files;
    for (const std::string& tag : tags) files += (files.empty() ? "" : ", ") + wheel("demo-1.0-" + tag + ".whl");
    const auto wheels = choose(package("demo", "wheels = [" + files + "]"));
    return wheels.size() == 1 ? wheels[0].file_name.substr(9) : std::string();
  };
  // As pip 26 and uv 0.13 choose.
  CHECK(locked({"py3-none-any", "1-py3-none-any", "10-py3-none-any", "2-py3-none-any"}) == "10-py3-none-any.whl");
  CHECK(locked({"10-py3-none-any", "2-py3-none-any", "py3-none-any"}) == "10-py3-none-any.whl");
  CHECK(locked({"1-py3-none-any", "1a-py3-none-any", "1b-py3-none-any"}) == "1b-py3-none-any.whl");
  CHECK(locked({"0-py3-none-any", "py3-none-any"}) == "0-py3-none-any.whl");
  CHECK(locked({"9-py3-none-any", "1-cp311-cp311-manylinux_2_17_x86_64"}) == "1-cp311-cp311-manylinux_2_17_x86_64.whl");
  CHECK(locked({std::string(30, '9') + "-py3-none-any", "5-py3-none-any"}) ==
        std::string(30, '9') + "-py3-none-any.whl");
}

TEST_CASE("wheel names are read from urls with escapes and fragments, sizes where they are told") {
  const auto wheels = choose(package(
      "torch",
      "wheels = [{ url = \"https://example.invalid/torch-2.11.0%2Bcpu-cp311-cp311-linux_x86_64.whl#frag\", size = "
      "77, hashes = { sha256 = \"" +
          kDigest + "\" } }]"));
  REQUIRE(wheels.size() == 1);
  CHECK(wheels[0].file_name == "torch-2.11.0+cpu-cp311-cp311-linux_x86_64.whl");
  CHECK(wheels[0].size == 77);
}

TEST_CASE("a wheel given by path is fetched from there") {
  const auto wheels = choose(package("demo",
                                     "wheels = [{ path = \"../my wheels/demo-1.0-py3-none-any.whl\", hashes = { "
                                     "sha256 = \"" +
                                         kDigest + "\" } }]"));
  REQUIRE(wheels.size() == 1);
  CHECK(wheels[0].url == "file:///my%20wheels/demo-1.0-py3-none-any.whl");
  CHECK(wheels[0].file_name == "demo-1.0-py3-none-any.whl");
}

TEST_CASE("an index on another machine names no file of this one, and one that lies here names those beside it") {
  const auto wheel_at = [](const std::string& address) {
    return choose_packages(
        pylock(package("demo", "wheels = [{ " + address + ", hashes = { sha256 = \"" + kDigest + "\" } }]")),
        "/evidence", "3.11", kTarget);
  };
  const PythonChoice far = wheel_at("url = \"file:///root/secret/demo-1.0-py3-none-any.whl\"");
  CHECK(far.local.size() == 1);
  CHECK_REFUSED(require_own_files(far, {.default_index = "https://example.invalid/simple"}), Format, "/root/secret");
  CHECK_REFUSED(require_own_files(far, {.default_index = "ours=http://example.invalid/simple",
                                        .others = {"b=file:///mirror/simple"}}),
                Format, "names a file of this one");
  CHECK_REFUSED(require_own_files(far, {.default_index = {}, .in_files = {"--find-links https://example.invalid/x"}}),
                Format, "names a file of this one");
  CHECK_REFUSED(require_own_files(wheel_at("path = \"../x/demo-1.0-py3-none-any.whl\""), {}), Format, "file:///x");
  const PythonChoice near = wheel_at("url = \"file:///mirror/files/demo-1.0-py3-none-any.whl\"");
  CHECK_NOTHROW(require_own_files(near, {.default_index = "ours=file:///mirror/simple"}));
  CHECK_NOTHROW(require_own_files(
      near, {.default_index = "https://example.invalid/simple", .others = {"file:///mirror/simple/"}}));
  CHECK_NOTHROW(require_own_files(near, {.default_index = {}, .in_files = {"--find-links /mirror/files"}}));
  CHECK_NOTHROW(require_own_files(near, {.default_index = {}, .in_files = {"-f ./wheels"}}));
  const PythonChoice named = choose_packages(
      pylock(package("demo", "archive = { path = \"/root/demo-1.0-py3-none-any.whl\", hashes = { sha256 = \"" +
                                 kDigest + "\" } }")),
      "/evidence", "3.11", kTarget);
  CHECK(named.local.empty());
  const PythonChoice cloned =
      choose_packages(pylock(package("demo", "vcs = { type = \"git\", url = \"file:///root/demo\", commit-id = \"" +
                                                 std::string(40, 'a') + "\" }")),
                      "/evidence", "3.11", kTarget);
  CHECK(cloned.local.empty());
  CHECK(wheel_at("url = \"https://example.invalid/demo-1.0-py3-none-any.whl\"").local.empty());
}

TEST_CASE("packages whose wheels do not fit the target are refused by name") {
  CHECK_REFUSED(choose(package("demo", "wheels = [" + wheel("demo-1.0-cp311-cp311-win_amd64.whl") + "]")), Platform,
                "demo 1.0");
}

TEST_CASE("a pylock that this program cannot rely on is refused") {
  CHECK_REFUSED(choose_packages("lock-version = \"2.0\"\n", "/", "3.11", kTarget), CannotCheck, "2.0");
  const std::string one = package("demo", "wheels = [" + wheel("demo-1.0-py3-none-any.whl") + "]");
  CHECK_REFUSED(choose(one + one), Conflict, "demo");
  const auto with_hashes = [](const std::string& hashes) {
    return package("demo", "wheels = [{ url = \"https://example.invalid/demo-1.0-py3-none-any.whl\", hashes = { " +
                               hashes + " } }]");
  };
  CHECK_REFUSED(choose(with_hashes("")), Format, "sha256");
  CHECK_REFUSED(choose(with_hashes("sha256 = \"00\", md5 = \"00\"")), Format, "sha256");
  CHECK(choose(with_hashes("md5 = \"00\""))[0].sha256 == bundle::Digest());  // until it was fetched: pin_unpinned
}

TEST_CASE("a package without a wheel that fits is a source, of whichever kind it comes") {
  const std::string commit(40, 'c');
  const auto found = sources(
      package("oss2", sdist()) + package("odd", sdist() + "wheels = [" + wheel("odd-1.0-cp39-cp39-win32.whl") + "]") +
      package("good", sdist() + "wheels = [" + wheel("good-1.0-py3-none-any.whl") + "]") +
      "[[packages]]\nname = \"repo\"\nversion = \"2\"\nvcs = { type = \"git\", url = \"https://example.invalid/r\", "
      "commit-id = \"" +
      commit +
      "\", subdirectory = \"py\" }\n"
      "[[packages]]\nname = \"Mine\"\ndirectory = { path = \"../mine\", editable = true }\n");
  REQUIRE(found.size() == 4);
  CHECK(found[0].name == "mine");
  CHECK(found[0].kind == SourceKind::Folder);
  CHECK(found[0].folder == "/mine");
  CHECK(found[0].title() == "mine");
  CHECK(found[1].title() == "odd 1.0");
  CHECK(found[2].title() == "oss2 1.0");
  CHECK(found[2].url == "https://example.invalid/x-1.0.tar.gz");
  CHECK(found[2].sha256->hex() == kDigest);
  CHECK(found[3].kind == SourceKind::Git);
  CHECK(found[3].commit == commit);
  CHECK(found[3].subdirectory == "py");
}

TEST_CASE("an archive that is a wheel is taken as one, with the version of its name") {
  const auto wheels = choose(
      "[[packages]]\nname = \"demo\"\narchive = { url = \"https://example.invalid/demo-3.1-py3-none-any.whl\", hashes "
      "= "
      "{ sha256 = \"" +
      kDigest + "\" } }\n");
  REQUIRE(wheels.size() == 1);
  CHECK(wheels[0].version == "3.1");
}

TEST_CASE("a commit that could be an option of git, a folder outside, and another kind of repository are refused") {
  const auto vcs = [](const std::string& type, const std::string& commit) {
    return "[[packages]]\nname = \"repo\"\nvcs = { type = \"" + type +
           "\", url = \"https://example.invalid/r\", commit-id = \"" + commit + "\" }\n";
  };
  CHECK_REFUSED(sources(vcs("git", "--upload-pack=evil --upload-pack=evil-evil")), Format, "40 hexadecimal digits");
  CHECK_REFUSED(sources(vcs("git", "main")), Format, "40 hexadecimal digits");
  std::string outside = vcs("git", std::string(40, 'a'));
  outside.replace(outside.rfind(" }"), 2, ", subdirectory = \"../x\" }");
  CHECK_REFUSED(sources(outside), Format, "not safe");
  CHECK_REFUSED(sources(vcs("hg", std::string(40, 'a'))), Format, "expected: git");
}

TEST_CASE("only files with a demanded hash are taken, and every package without one is named") {
  const std::string other(64, 'b');
  const auto allow = [](const std::string& name, const std::string& hex) {
    return RequirementHashes{{name, {*bundle::Digest::from_hex(hex)}}};
  };
  const std::string demo = package("demo", sdist(other) + "wheels = [" + wheel("demo-1.0-py3-none-any.whl") + "]");
  CHECK(sources(demo, allow("demo", kDigest)).empty());
  CHECK(sources(demo, allow("demo", other)).size() == 1);  // the wheel is not allowed, its source is
  CHECK(sources(demo, allow("else", other)).empty());
  RequirementHashes both = allow("demo", std::string(64, 'c'));
  both.merge(allow("lone", other));
  CHECK_REFUSED(sources(demo + package("lone", "wheels = [" + wheel("lone-1.0-py3-none-any.whl") + "]"), both), Digest,
                "demo 1.0, lone 1.0");
}

TEST_CASE("a pylock for several machines becomes requirements that keep version, marker and hashes") {
  const auto lines = pylock_as_requirements(
      pylock(
          package("demo", "marker = \"sys_platform == 'linux'\"\n" + sdist(std::string(64, 'b')) + "wheels = [" +
                              wheel("demo-1.0-py3-none-any.whl") + "]") +
          "[[packages]]\nname = \"mine\"\ndirectory = { path = \"../mine\" }\n"
          "[[packages]]\nname = \"repo\"\nvcs = { type = \"git\", url = \"https://example.invalid/r\", commit-id = \"" +
          std::string(40, 'c') + "\" }\n"),
      "/lock", "3.11", kTarget);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] ==
        "demo==1.0 ; sys_platform == 'linux' --hash=sha256:" + kDigest + " --hash=sha256:" + std::string(64, 'b'));
  CHECK(lines[1] == "mine @ file:///mine");
  CHECK(lines[2] == "repo @ git+https://example.invalid/r@" + std::string(40, 'c'));
  CHECK_REFUSED(pylock_as_requirements(pylock("[[packages]]\nname = \"demo\"\n"), "/", "3.11", kTarget), Format,
                "no version");
  CHECK_REFUSED(pylock_as_requirements(pylock(package("demo\\n--index-url x", sdist())), "/", "3.11", kTarget), Format,
                "line break");
}

TEST_CASE("a file that lies beside a pylock is asked for by its path, and the one for the target") {
  const auto here = [](const std::string& file) {
    return "{ path = \"w/" + file + "\", hashes = { sha256 = \"" + kDigest + "\" } }";
  };
  const auto line = [&](const std::string& files) {
    return pylock_as_requirements(pylock(package("demo", files)), "/lock", "3.11", kTarget).at(0);
  };
  const std::string hash = " --hash=sha256:" + kDigest, any = here("demo-1.0-py3-none-any.whl");
  CHECK(line("wheels = [" + here("demo-1.0-cp311-cp311-win_amd64.whl") + ", " + any + "]") ==
        "demo @ file:///lock/w/demo-1.0-py3-none-any.whl" + hash + hash);
  CHECK(line("sdist = " + here("demo-1.0.tar.gz")) == "demo @ file:///lock/w/demo-1.0.tar.gz" + hash);
  CHECK(line("wheels = [" + here("demo-1.0-cp311-cp311-win_amd64.whl") + "]") == "demo==1.0" + hash);
  CHECK(line("wheels = [" + any + ", " + wheel("demo-1.0-py3-none-any.whl") + "]") == "demo==1.0" + hash + hash);
}

TEST_CASE("of a pylock's groups and extras those count that it takes by default or that the job names") {
  const auto with = [&](const std::string& marker) { return package("demo", "marker = '" + marker + "'\n" + sdist()); };
  const std::string head = "extras = [\"Fast_Path\"]\ndependency-groups = [\"dev\"]\ndefault-groups = [\"default\"]\n";
  const auto line = [&](const std::string& marker, const std::vector<std::string>& extras = {},
                        const std::vector<std::string>& groups = {}) {
    const std::string text =
        pylock_as_requirements(pylock(head + with(marker)), "/", "3.11", kTarget, extras, groups).at(0);
    return text.substr(0, text.find(" --hash"));
  };
  const std::string yes = "demo==1.0 ; python_version >= '0'", no = "demo==1.0 ; python_version < '0'";
  CHECK(line("\"default\" in dependency_groups") == yes);
  CHECK(line("\"dev\" in dependency_groups") == no);
  CHECK(line("\"dev\" in dependency_groups", {}, {"dev"}) == yes);
  CHECK(line("\"default\" in dependency_groups", {}, {"dev"}) == yes);
  CHECK(line("\"dev\" not in dependency_groups") == yes);
  CHECK(line("\"fast-path\" in extras") == no);
  CHECK(line("\"fast-path\" in extras", {"fast.path"}) == yes);
  CHECK(line("sys_platform == \"linux\" and (\"dev\" in dependency_groups or \"default\" in dependency_groups)") ==
        "demo==1.0 ; sys_platform == \"linux\" and (python_version < '0' or python_version >= '0')");
  CHECK_REFUSED(line("\"dev\" in dependency_groups", {}, {"prod"}), Usage, "one of: dev");
}

TEST_CASE("the indexes of a lock are told, but not the one that most of it comes from") {
  const auto of_uv = [](const std::string& registry) {
    return "[[package]]\nname = \"x\"\nsource = { registry = \"" + registry + "\" }\n";
  };
  const std::string common = "https://most.invalid/simple", gpu = "https://gpu.invalid/simple";
  CHECK(indexes_of_lock(of_uv(common) + of_uv(common) + of_uv(gpu)) == std::vector<std::string>{gpu});
  CHECK(indexes_of_lock(of_uv(common) + of_uv(gpu)) == std::vector<std::string>{common, gpu});
  CHECK(indexes_of_lock(of_uv(common)).empty());
  CHECK(indexes_of_lock("[[package]]\nname = \"x\"\nsource = { editable = \".\" }\n").empty());
  CHECK(indexes_of_lock("[[packages]]\nindex = \"" + gpu + "\"\n[[packages]]\nindex = \"" + common + "\"\n").size() ==
        2);
}
