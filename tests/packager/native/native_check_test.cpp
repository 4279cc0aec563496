// SPDX-License-Identifier: Apache-2.0
// The native check on bundles made of values: one fault each, and the good one beside it.
#include "packager/native/native_check.hpp"

#include <doctest/doctest.h>
#include <elf.h>

#include <algorithm>

#include "packager/native/native_report.hpp"
#include "packager/pack/other_cuda.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using Kind = NativeFinding::Kind;

namespace {

const std::string kSite = "lib/python3.11/site-packages/";
const std::string kProgram = "libexec/python3.11";

// An interpreter that finds what lies in lib/, as sealift-pack makes it, and whatever a case adds.
struct Bundle {
  NativeFiles files;
  bundle::Target target{.arch = "x86_64", .glibc = {2, 28}};
  std::optional<bundle::CarriedRuntime> runtime;

  Bundle() {
    files.files.reserve(64);  // so that what add() returns stays good until check() sorts
    NativeFile& python = add(kProgram, "the interpreter");
    python.elf.type = ET_EXEC;
    python.elf.interpreter = "/lib64/ld-linux-x86-64.so.2";
    python.elf.soname.clear();
    python.elf.rpath = "$ORIGIN/../lib";
    python.from_wheel = false;
  }
  NativeFile& add(const std::string& path, const std::string& owner = "demo-1.0.whl") {
    NativeFile file{.path = path, .owner = owner, .from_wheel = true};
    file.elf.arch = "x86_64";
    file.elf.type = ET_DYN;
    file.elf.dynamic = true;
    file.elf.soname = file.file_name();
    file.elf.needed = {"libc.so.6"};
    files.files.push_back(file);
    return files.files.back();
  }
  NativeReport check() {
    std::sort(files.files.begin(), files.files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return check_native(files, target, kProgram, runtime);
  }
};

// The only finding; a test failure when there is none or another.
NativeFinding only(const NativeReport& report) {
  std::string all;
  for (const NativeFinding& finding : report.findings) all += finding.what + "\n";
  INFO(all);
  REQUIRE(report.findings.size() == 1);
  return report.findings.front();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("what finds its libraries beside itself, in the environment's lib, and on the target is complete") {
  Bundle bundle;
  bundle.add("lib/libstdc++.so.6", "the interpreter");
  bundle.add(kSite + "nvidia/lib/libcublas.so.13");
  NativeFile& torch = bundle.add(kSite + "torch/lib/libtorch.so");
  torch.elf.needed = {"libcublas.so.13", "libstdc++.so.6", "libc.so.6", "libcuda.so.1", "ld-linux-x86-64.so.2"};
  torch.elf.rpath = "$ORIGIN/../../nvidia/lib:$ORIGIN";
  const NativeReport report = bundle.check();
  CHECK(report.findings.empty());
  CHECK(report.files == 4);
  CHECK(report.needed == 8);
}

TEST_CASE("with a carried runtime its glibc counts, and without one the refusal names it as a way out") {
  Bundle bundle;
  bundle.add(kSite + "a/_a.abi3.so").elf.wanted_versions["libc.so.6"] = {"GLIBC_2.34"};
  const NativeFinding finding = only(bundle.check());
  CHECK(finding.severity == Severity::Refusal);
  CHECK(has(finding.what, "demo-1.0.whl needs glibc 2.34, newer than the target's 2.28"));
  CHECK(has(finding.next, "runtime = \"carried\""));
  bundle.runtime = {.glibc = {2, 36}, .kernel = "3.2.0"};
  const NativeReport report = bundle.check();
  CHECK(only(report).severity == Severity::Note);
  CHECK(has(native_summary(report), "demo-1.0.whl needs glibc 2.34, which is carried; the target has 2.28"));
  bundle.runtime->glibc = {2, 33};
  const NativeFinding still = only(bundle.check());
  CHECK(has(still.what, "needs glibc 2.34, newer than the carried 2.33"));
  CHECK(!has(still.next, "runtime ="));
}

TEST_CASE("a program that no launcher starts has the target's own glibc, whatever is carried") {
  Bundle bundle;
  bundle.runtime = {.glibc = {2, 36}, .kernel = "3.2.0"};
  const auto add_program = [&](const std::string& path) -> NativeFile& {
    NativeFile& program = bundle.add(path);
    program.elf.interpreter = "/lib64/ld-linux-x86-64.so.2";
    program.elf.wanted_versions["libc.so.6"] = {"GLIBC_2.34"};
    return program;
  };
  const auto own = [](const NativeReport& report) {  // what is said beside the component's floor
    std::vector<NativeFinding> findings = report.findings;
    std::erase_if(findings, [](const NativeFinding& finding) { return has(finding.what, "which is carried"); });
    return findings;
  };
  SUBCASE("launched") {
    add_program("libexec/tool").from_wheel = false;
    CHECK(own(bundle.check()).empty());
  }
  SUBCASE("of a wheel") {
    add_program(kSite + "demo/bin/tool");
    REQUIRE(own(bundle.check()).size() == 1);
    const NativeFinding finding = own(bundle.check()).front();
    CHECK(finding.severity == Severity::Warning);
    CHECK(has(finding.what, "demo/bin/tool of demo-1.0.whl starts with the target's own glibc 2.28, but needs 2.34"));
  }
  SUBCASE("of the job, elsewhere than in bin") {
    add_program("tools/tool").from_wheel = false;
    REQUIRE(own(bundle.check()).size() == 1);
    const NativeFinding finding = own(bundle.check()).front();
    CHECK(finding.severity == Severity::Refusal);
    CHECK(has(finding.next, "bin/"));
  }
}

TEST_CASE("the launcher of a carried runtime lets everything in its process find the environment's lib") {
  Bundle bundle;
  bundle.add("lib/libz.so.1", "the interpreter");
  NativeFile& extension = bundle.add(kSite + "a/_a.abi3.so");
  extension.elf.needed = {"libz.so.1"};
  extension.elf.runpath = "$ORIGIN";  // which hides it otherwise
  CHECK(only(bundle.check()).kind == Kind::LoadedBefore);
  bundle.runtime = {.glibc = {2, 36}, .kernel = "3.2.0"};
  CHECK(bundle.check().findings.empty());
}

TEST_CASE("a library that nothing brings is refused with its SONAME and who wants it") {
  Bundle bundle;
  bundle.add(kSite + "cv2/cv2.abi3.so", "opencv-4.0.whl").elf.needed = {"libGL.so.1"};
  const NativeFinding finding = only(bundle.check());
  CHECK(finding.kind == Kind::MissingLibrary);
  CHECK(finding.severity == Severity::Refusal);
  CHECK(finding.library == "libGL.so.1");
  CHECK(finding.what == "libGL.so.1 is not in the bundle; wanted by cv2/cv2.abi3.so of opencv-4.0.whl");
}

TEST_CASE("an old search path is inherited from who loads a library, a new one is not") {
  Bundle bundle;
  bundle.add(kSite + "a/deep/libdeep.so.1");
  bundle.add(kSite + "a/libmiddle.so").elf.needed = {"libdeep.so.1"};
  NativeFile& outer = bundle.add(kSite + "a/outer.abi3.so");
  outer.elf.needed = {"libmiddle.so"};
  SUBCASE("old") {
    outer.elf.rpath = "$ORIGIN:$ORIGIN/deep";
    CHECK(bundle.check().findings.empty());
  }
  SUBCASE("new") {
    outer.elf.runpath = "$ORIGIN:$ORIGIN/deep";
    CHECK(only(bundle.check()).kind == Kind::LoadedBefore);
  }
}

TEST_CASE("a library is found by its SONAME once the one that needs both has loaded it") {
  Bundle bundle;
  bundle.add("lib/libstdc++.so.6", "the interpreter");
  NativeFile& blas = bundle.add(kSite + "nvidia/libblas.so.1");
  blas.elf.runpath = "$ORIGIN";  // which hides the environment's lib
  blas.elf.needed = {"libstdc++.so.6"};
  SUBCASE("by nobody: a note, for it may be imported after another") {
    const NativeFinding finding = only(bundle.check());
    CHECK(finding.kind == Kind::LoadedBefore);
    CHECK(finding.severity == Severity::Note);
  }
  NativeFile& torch = bundle.add(kSite + "torch/libtorch.so");
  torch.elf.rpath = "$ORIGIN/../nvidia";
  SUBCASE("by what loads it") {
    torch.elf.needed = {"libblas.so.1", "libstdc++.so.6"};
    CHECK(bundle.check().findings.empty());
  }
}

TEST_CASE("what the table says is opened by name is loaded after what its opener needs") {
  Bundle bundle;
  bundle.add("lib/libstdc++.so.6", "the interpreter");
  bundle.add(kSite + "torch/lib/libcaffe2_nvrtc.so").elf.needed = {};
  NativeFile& linalg = bundle.add(kSite + "torch/lib/libtorch_cuda_linalg.so");
  linalg.elf.runpath = "$ORIGIN";
  linalg.elf.needed = {"libstdc++.so.6"};
  bundle.add(kSite + "torch/lib/libtorch_cuda.so").elf.needed = {"libstdc++.so.6"};
  CHECK(bundle.check().findings.empty());

  SUBCASE("and is refused when nothing brings it") {
    bundle.files.files.erase(std::find_if(bundle.files.files.begin(), bundle.files.files.end(),
                                          [](const NativeFile& file) { return has(file.path, "linalg"); }));
    const NativeFinding finding = only(bundle.check());
    CHECK(finding.kind == Kind::OpenedLibrary);
    CHECK(finding.severity == Severity::Refusal);
    CHECK(
        has(finding.what, "libtorch_cuda_linalg.so is not in the bundle; torch/lib/libtorch_cuda.so of demo-1.0.whl"));
  }
}

TEST_CASE("a library that the job says is the target's own is not asked for, unless the bundle brings it") {
  Bundle bundle;
  bundle.add(kSite + "torch_npu/lib/libtorch_npu.so").elf.needed = {"libascendcl.so", "libhccl.so.1"};
  CHECK(bundle.check().findings.size() == 2);
  bundle.files.of_host = {"libascendcl.so", "libhccl*"};
  CHECK(bundle.check().findings.empty());
  bundle.add(kSite + "other/libhccl.so.1");  // where libtorch_npu.so does not find it
  CHECK(bundle.check().findings.size() == 1);
}

TEST_CASE("a part of another major version of cuDNN does not count") {
  Bundle bundle;
  for (const char* part : {"graph", "cnn", "adv", "engines_precompiled", "engines_runtime_compiled", "heuristic"})
    bundle.add(kSite + "nvidia/libcudnn_" + part + ".so.9");
  bundle.add(kSite + "nvidia/libcudnn.so.9");
  bundle.add(kSite + "nvidia/libcudnn_ops.so.10");
  const NativeFinding finding = only(bundle.check());
  CHECK(finding.kind == Kind::OpenedLibrary);
  CHECK(finding.library == "libcudnn_ops.so.9");
}

TEST_CASE("a plugin for software that the site may have is not missed, but told") {
  Bundle bundle;
  bundle.add(kSite + "nvidia/nvshmem_transport_ucx.so.3").elf.needed = {"libucp.so.0"};
  const NativeFinding finding = only(bundle.check());
  CHECK(finding.kind == Kind::MissingLibrary);
  CHECK(finding.severity == Severity::Note);
}

TEST_CASE("a library that is needed by a path was linked without SONAME, and is not found in another place") {
  Bundle bundle;
  bundle.add(kSite + "a/libinner.so").elf.soname.clear();
  NativeFile& outer = bundle.add(kSite + "a/libouter.so");
  SUBCASE("absolute") {
    outer.elf.needed = {"/build/lib/libinner.so"};
    const NativeFinding finding = only(bundle.check());
    CHECK(finding.severity == Severity::Refusal);
    CHECK(has(finding.next, "without SONAME"));
  }
  SUBCASE("relative to itself: found, with a warning that it may be loaded twice") {
    outer.elf.needed = {"$ORIGIN/libinner.so"};
    const NativeFinding finding = only(bundle.check());
    CHECK(finding.kind == Kind::NoSoname);
    CHECK(finding.severity == Severity::Warning);
  }
}

TEST_CASE("a file for another architecture is passed over by who needs it, and refused when it would be imported") {
  Bundle bundle;
  NativeFile& other = bundle.add(kSite + "a/libhelper.so");
  other.elf.arch = "aarch64";
  SUBCASE("a wheel with nothing for the target") {
    const NativeFinding finding = only(bundle.check());
    CHECK(finding.kind == Kind::WrongArchitecture);
    CHECK(finding.severity == Severity::Refusal);
    CHECK(has(finding.what, "a/libhelper.so of demo-1.0.whl is for aarch64, the target is x86_64"));
  }
  SUBCASE("a wheel with something for each is told") {
    bundle.add(kSite + "a/libhelper_x86.so");
    CHECK(only(bundle.check()).severity == Severity::Note);
  }
  SUBCASE("a wheel for any machine may have it as data") {
    other.owner = "demo-1.0-py3-none-any.whl";
    CHECK(only(bundle.check()).severity == Severity::Warning);
  }
  SUBCASE("but not among what Python imports") {
    bundle.add(kSite + "a/libhelper_x86.so");
    other.elf.soname.clear();
    other.path = kSite + "a/_speed.cpython-311-x86_64-linux-gnu.so";
    CHECK(only(bundle.check()).severity == Severity::Refusal);
  }
  SUBCASE("who needs it does not find it") {
    bundle.add(kSite + "a/user.abi3.so").elf.needed = {"libhelper.so"};
    bundle.files.files.back().elf.rpath = "$ORIGIN";
    const NativeReport report = bundle.check();
    REQUIRE(report.findings.size() == 2);
    CHECK(has(report.findings[0].what, "libhelper.so is not in the bundle but for aarch64"));
  }
}

TEST_CASE("the library that is found must offer the versions that are wanted") {
  Bundle bundle;
  NativeFile& cxx = bundle.add("lib/libstdc++.so.6", "the interpreter");
  NativeFile& user = bundle.add(kSite + "a/user.abi3.so");
  user.elf.needed = {"libstdc++.so.6"};
  user.elf.wanted_versions["libstdc++.so.6"] = {"GLIBCXX_3.4.29", "GLIBCXX_3.4.30"};
  SUBCASE("all there") {
    cxx.elf.offered_versions = {"GLIBCXX_3.4.29", "GLIBCXX_3.4.30"};
    CHECK(bundle.check().findings.empty());
  }
  SUBCASE("one lacks") {
    cxx.elf.offered_versions = {"GLIBCXX_3.4.29"};
    const NativeFinding finding = only(bundle.check());
    CHECK(finding.kind == Kind::SymbolVersion);
    CHECK(
        finding.what ==
        "libstdc++.so.6 (lib/libstdc++.so.6) does not offer GLIBCXX_3.4.30; wanted by a/user.abi3.so of demo-1.0.whl");
  }
  SUBCASE("a library without versions is taken, as ld.so does") {
    CHECK(bundle.check().findings.empty());
  }
}

TEST_CASE("each component's floors are told, and a glibc newer than the target's is refused by component") {
  Bundle bundle;
  bundle.add(kSite + "a/a.so", "a.whl").elf.wanted_versions["libc.so.6"] = {"GLIBC_2.2.5", "GLIBC_2.27",
                                                                            "GLIBC_PRIVATE"};
  bundle.add(kSite + "b/b.so", "b.whl").elf.wanted_versions = {
      {"libc.so.6", {"GLIBC_2.34"}}, {"libstdc++.so.6", {"GLIBCXX_3.4.9", "GLIBCXX_3.4.11", "CXXABI_FLOAT128"}}};
  bundle.add(kSite + "c/c.so", "c.whl").elf.wanted_versions["libc.so.6"] = {"GLIBC_2.2.5", "GLIBC_ABI_DT_RELR"};
  const NativeReport report = bundle.check();
  CHECK(report.floors.at("a.whl").at("GLIBC").text() == "2.27");
  CHECK(report.floors.at("b.whl").at("GLIBCXX").text() == "3.4.11");
  CHECK_FALSE(report.floors.at("b.whl").contains("CXXABI"));
  CHECK(highest(report.floors).at("GLIBC").text() == "2.36");
  CHECK(glibc_floor(report) == bundle::GlibcVersion{2, 36});
  REQUIRE(report.count(Severity::Refusal) == 2);
  CHECK(has(report.findings[0].what, "b.whl needs glibc 2.34, newer than the target's 2.28"));
  CHECK(has(report.findings[1].what, "c.whl needs glibc 2.36"));  // packed relocations
}

TEST_CASE("an executable stack is a warning for old targets and refused for those that do not take it") {
  Bundle bundle;
  bundle.add(kSite + "a/a.so").elf.executable_stack = true;
  CHECK(only(bundle.check()).severity == Severity::Warning);
  bundle.target.glibc = {2, 41};
  const NativeFinding finding = only(bundle.check());
  CHECK(finding.kind == Kind::ExecutableStack);
  CHECK(finding.severity == Severity::Refusal);
}

TEST_CASE("text relocations and circles are told, and stop nothing") {
  Bundle bundle;
  bundle.add(kSite + "a/a.so").elf.text_relocations = true;
  CHECK(only(bundle.check()).kind == Kind::TextRelocations);
  for (const auto& [name, needed] : {std::pair("b", "c"), std::pair("c", "b"), std::pair("d", "b")}) {
    NativeFile& file = bundle.add(kSite + name + ".so");
    file.elf.needed = {std::string(needed) + ".so"};
    file.elf.rpath = "$ORIGIN";
  }
  const NativeReport report = bundle.check();
  REQUIRE(report.findings.size() == 2);
  CHECK(has(report.findings[1].what, "in a cycle: b.so of demo-1.0.whl, c.so of demo-1.0.whl"));
  CHECK(report.count(Severity::Note) == 2);
}

TEST_CASE("the driver's libraries are refused, but not the stubs that a toolkit links against") {
  Bundle bundle;
  bundle.add(kSite + "nvidia/lib/stubs/libcuda.so").elf.soname = "libcuda.so.1";
  CHECK(bundle.check().findings.empty());
  bundle.add(kSite + "nvidia/lib/libcuda.so.1");
  const NativeFinding finding = only(bundle.check());
  CHECK(finding.kind == Kind::DriverLibrary);
  CHECK(finding.severity == Severity::Refusal);
}

TEST_CASE("a name that nothing explains is a warning") {
  Bundle bundle;
  NativeFile& file = bundle.add(kSite + "a/a.so");
  file.elf.needed = {"libz.so.1"};
  file.names = {"a.so", "libz.so", "libcuda.so.%d", "libnccl-net.so", "libsurprise.so.4", "libsurprise.so"};
  bundle.add("lib/libz.so.1", "the interpreter");
  const NativeFinding finding = only(bundle.check());
  CHECK(finding.kind == Kind::UnknownName);
  CHECK(finding.severity == Severity::Warning);
  CHECK(has(finding.what, "libsurprise.so may be opened by a/a.so of demo-1.0.whl"));
  file.names.push_back("libother.so");
  CHECK(
      has(only(bundle.check()).what, "libother.so, libsurprise.so may be opened by a/a.so"));  // one cause, one warning
}

TEST_CASE("names that only the interpreter knows warn nobody, who could not act on them: Debian's python3.11 has six") {
  Bundle bundle;
  bundle.add("bin/python3.11", kInterpreterOwner).names = {"libb2.so", "libnsl.so.1"};
  CHECK(only(bundle.check()).severity == Severity::Note);
  bundle.add(kSite + "a/a.so").names = {"libb2.so"};
  const NativeReport report = bundle.check();
  CHECK(report.count(Severity::Warning) == 1);
  CHECK(has(report.findings.front().what, "libb2.so may be opened by"));
}

TEST_CASE("a library that nothing needs may miss its own: torch 2.15 has such a libgfortran.so.5") {
  Bundle bundle;
  bundle.add(kSite + "torch/lib/libgfortran.so.5").elf.needed = {"libquadmath.so.0"};
  SUBCASE("a warning, with who wants it") {
    const NativeFinding finding = only(bundle.check());
    CHECK(finding.kind == Kind::MissingLibrary);
    CHECK(finding.severity == Severity::Warning);
    CHECK(has(finding.what, "libquadmath.so.0 is not in the bundle; wanted by torch/lib/libgfortran.so.5 of demo"));
    CHECK(has(finding.what, "which nothing in the bundle needs"));
  }
  SUBCASE("refused once something needs it") {
    NativeFile& blas = bundle.add(kSite + "torch/lib/libblas.so");
    blas.elf.needed = {"libgfortran.so.5"};
    blas.elf.rpath = "$ORIGIN";
    CHECK(only(bundle.check()).severity == Severity::Refusal);
  }
  SUBCASE("refused where the table says that it is opened") {
    bundle.files.files.back().path = kSite + "torch/lib/libcusolverMg.so.12";
    bundle.files.files.back().elf.soname = "libcusolverMg.so.12";
    bundle.add(kSite + "torch/lib/libcusolver.so.12");
    CHECK(only(bundle.check()).severity == Severity::Refusal);
  }
  SUBCASE("refused where Python may import it") {
    bundle.files.files.back().path = kSite + "torch/lib/libgfortran.so";
    CHECK(only(bundle.check()).severity == Severity::Refusal);
  }
  SUBCASE("refused where the interpreter or a program brings it") {
    bundle.files.files.back().from_wheel = false;
    CHECK(only(bundle.check()).severity == Severity::Refusal);
  }
}

TEST_CASE("a name that a library had before auditwheel renamed it is explained, in its own wheel") {
  Bundle bundle;
  bundle.add(kSite + "pillow.libs/libjpeg-6dc8d115.so.62.4.0", "pillow.whl").names = {"libjpeg.so.62"};
  bundle.add(kSite + "PIL/_imaging.abi3.so", "pillow.whl").names = {"libjpeg.so.62", "libgfortran.so.5"};
  bundle.add(kSite + "pillow.libs/libgfortran-040039e1-0352e75f.so.5.0.0", "pillow.whl").names = {
      "libgfortran-040039e1.so.5.0.0"};
  CHECK(bundle.check().findings.empty());
  SUBCASE("in another it is not: whoever opens it there will not find it") {
    bundle.add(kSite + "other/a.so", "other.whl").names = {"libjpeg.so.62"};
    CHECK(has(only(bundle.check()).what, "libjpeg.so may be opened by other/a.so of other.whl"));
  }
}

TEST_CASE("a program does not see what the interpreter sees") {
  Bundle bundle;
  bundle.add("lib/libstdc++.so.6", "the interpreter");
  NativeFile& program = bundle.add("libexec/tool", "the program libexec/tool");
  program.elf.interpreter = "/lib64/ld-linux-x86-64.so.2";
  program.elf.needed = {"libstdc++.so.6"};
  program.from_wheel = false;
  SUBCASE("the job's own is a warning") {
    const NativeFinding finding = only(bundle.check());
    CHECK(finding.kind == Kind::TargetsOwn);
    CHECK(finding.severity == Severity::Warning);
  }
  SUBCASE("a wheel's is a note") {
    program.from_wheel = true;
    CHECK(only(bundle.check()).severity == Severity::Note);
  }
  SUBCASE("with a search path of its own it starts") {
    program.elf.runpath = "$ORIGIN/../lib";
    CHECK(bundle.check().findings.empty());
  }
  SUBCASE("what is nowhere is refused") {
    program.elf.needed = {"libnowhere.so.1"};
    CHECK(only(bundle.check()).severity == Severity::Refusal);
  }
}

TEST_CASE("links of the interpreter's tree lead to files, and never in a circle") {
  Bundle bundle;
  bundle.add("lib/libz.so.1.3", "the interpreter").elf.soname = "libz.so.1";
  bundle.files.links = {{"lib/libz.so.1", "lib/libz.so.1.3"}, {"lib/x", "lib/y"}, {"lib/y", "lib/x"}};
  bundle.add(kSite + "a/a.so").elf.needed = {"libz.so.1"};
  CHECK(bundle.check().findings.empty());
}

TEST_CASE("a broken ELF file is refused where it would be imported, else a warning") {
  Bundle bundle;
  NativeFile& broken = bundle.add(kSite + "a/sample.bin");
  broken.elf = {};
  broken.fault = "an ELF file is not acceptable: a string runs past its end";
  SUBCASE("data") {
    CHECK(only(bundle.check()).severity == Severity::Warning);
  }
  SUBCASE("an extension") {
    broken.path = kSite + "a/_c.abi3.so";
    CHECK(only(bundle.check()).severity == Severity::Refusal);
  }
}

TEST_CASE("a plugin for another host may need a newer glibc or libstdc++ than the target has, and sets no floor") {
  Bundle bundle;  // bitsandbytes for XPU, which Debian 11 takes from pip; debugpy's, in a wheel for any machine
  bundle.add("lib/libstdc++.so.6", "the interpreter").elf.offered_versions = {"CXXABI_1.3.12"};
  NativeFile& plugin = bundle.add(kSite + "b/libbitsandbytes_xpu2025.so");
  plugin.elf.needed = {"libstdc++.so.6"};
  plugin.elf.wanted_versions = {{"libc.so.6", {"GLIBC_2.99"}}, {"libstdc++.so.6", {"CXXABI_1.3.13"}}};
  bundle.add(kSite + "d/attach_linux_amd64.so").elf.wanted_versions["libc.so.6"] = {"GLIBC_2.98"};
  const NativeReport report = bundle.check();
  CHECK(report.count(Severity::Refusal) == 0);
  CHECK(report.count(Severity::Note) == 3);
  CHECK(glibc_floor(report) == bundle::GlibcVersion{});
  SUBCASE("the one that this host takes may not") {
    bundle.add(kSite + "b/libbitsandbytes_cuda130.so").elf.wanted_versions["libc.so.6"] = {"GLIBC_2.99"};
    CHECK(bundle.check().count(Severity::Refusal) == 1);
    CHECK(glibc_floor(bundle.check()) == bundle::GlibcVersion{.major = 2, .minor = 99});
  }
  SUBCASE("what Python imports may not") {
    bundle.add(kSite + "d/_c.abi3.so").elf.wanted_versions["libc.so.6"] = {"GLIBC_2.98"};
    CHECK(bundle.check().count(Severity::Refusal) == 1);
  }
}

TEST_CASE("a package that misses its CUDA is named, and not one that has a plugin for each CUDA") {
  Bundle bundle;  // bitsandbytes beside xformers for CUDA 12
  bundle.add(kSite + "nvidia/lib/libcudart.so.13", "cuda.whl");
  bundle.add(kSite + "b/libbitsandbytes_cuda126.so", "bitsandbytes-0.50.2-py3-none-any.whl").elf.needed = {
      "libcudart.so.12"};
  bundle.add(kSite + "x/_C.so", "xformers-0.0.35-py39-none-any.whl").elf.needed = {"libcudart.so.12"};
  NativeReport report = bundle.check();
  name_other_cuda(report, bundle.files, PackPlan{});
  const bundle::Error error = test::refusal([&] { require_native(report, bundle.target, {}); });
  CHECK(test::mentions(error, "xformers is for CUDA 12, and the bundle carries CUDA 13"));
  CHECK(test::mentions(error, "excludes = [\"xformers\"]"));
  CHECK_FALSE(test::mentions(error, "excludes = [\"bitsandbytes\"]"));
}

TEST_CASE("everything that is refused is said in one error, each with its remedy") {
  const test::TempDir host;
  std::filesystem::copy_file("/proc/self/exe", host / "libhere.so.1");
  Bundle bundle;
  bundle.target.glibc = {2, 99};
  bundle.add(kSite + "a/a.so").elf.needed = {"libnowhere.so.2", "libhere.so.1"};
  bundle.add(kSite + "b/libcuda.so.1", "b.whl").elf.wanted_versions["libc.so.6"] = {"GLIBC_2.100"};
  const NativeReport report = bundle.check();
  const bundle::Error error = test::refusal([&] { require_native(report, bundle.target, {host.path()}); });
  CHECK(error.code() == bundle::ErrorCode::Missing);
  CHECK(test::mentions(error, "4 finding(s)"));
  CHECK(test::mentions(error, "libnowhere.so.2 is not in the bundle"));
  CHECK(test::mentions(error, "-> require a wheel that brings it"));
  CHECK(test::mentions(error, "[[program]]\n         source = \"" + (host / "libhere.so.1").string() +
                                  "\"\n         into = \"lib/libhere.so.1\"\n         executable = false"));
  CHECK(test::mentions(error, "b.whl needs glibc 2.100"));
  CHECK(test::mentions(error, "part of the GPU driver"));

  SUBCASE("a library of this machine that is too new for the target is not offered") {
    bundle.target.glibc = {2, 2};
    const bundle::Error old = test::refusal([&] { require_native(report, bundle.target, {host.path()}); });
    CHECK(test::mentions(old, "libhere.so.1 of this machine needs glibc"));
    CHECK(test::mentions(old, "system = \"DIR\""));
    CHECK(test::mentions(old, "host_libraries = [\"libhere.so.1\"]"));
  }
}

TEST_CASE("a report says counts, floors and the driver, to people and to machines") {
  Bundle bundle;
  bundle.add(kSite + "nvidia/libcudart.so.13", "cuda.whl").elf.wanted_versions["libc.so.6"] = {"GLIBC_2.17"};
  const NativeReport report = bundle.check();
  const std::string text = native_summary(report);
  CHECK(has(text, "native: 2 ELF files need 2 libraries, all there"));
  CHECK(has(text, "floor GLIBC_2.17 because of cuda.whl"));
  CHECK(has(text, "CUDA 13 needs NVIDIA driver 580 or newer"));
  const bundle::Json json = native_json(report);
  CHECK(json["components"]["cuda.whl"]["GLIBC"] == "2.17");
  CHECK(json["driver_floor"] == "580");
}
