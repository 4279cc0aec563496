// SPDX-License-Identifier: Apache-2.0
// Whose the folders are that ld.so searches (rows D02 to D04 of tests/HOSTILE.md), and what search paths may say:
// bundles made of values, with one fault each, and the real pairs beside them.
#include "packager/native/folder_check.hpp"

#include <doctest/doctest.h>
#include <elf.h>

#include <algorithm>

#include "sealift/bundle/core/bytes.hpp"

using namespace sealift;
using namespace sealift::packager;
using Kind = NativeFinding::Kind;

namespace {

const std::string kFolderSite = "lib/python3.11/site-packages/";
const std::string kFolderPython = "libexec/python3.11";
// As torch 2.11 has it.
const std::string kFolderTorch = "$ORIGIN/../../nvidia/cudnn/lib:$ORIGIN/../../nvidia/cu13/lib:$ORIGIN";

struct Searched {
  NativeFiles files;

  Searched() {
    files.files.reserve(64);  // so that what add() returns stays good
    NativeFile& python = add(kFolderPython, "");
    python.elf.interpreter = "/lib64/ld-linux-x86-64.so.2";
    python.elf.rpath = "$ORIGIN/../lib";
  }
  // A library of `project`; of the job or the interpreter where that is empty. `bytes` stands for its contents.
  NativeFile& add(const std::string& path, const std::string& project, const std::string& bytes = "") {
    NativeFile file{.path = path,
                    .owner = project.empty() ? "the interpreter" : project + "-1.0-py3-none-any.whl",
                    .from_wheel = !project.empty()};
    file.sha256 = bundle::sha256(bundle::as_bytes(bytes.empty() ? path : bytes));
    file.elf.arch = "x86_64";
    file.elf.type = ET_DYN;
    file.elf.dynamic = true;
    files.files.push_back(file);
    return files.files.back();
  }
  NativeFile& wheel(const std::string& path, const std::string& project, const std::string& bytes = "") {
    return add(kFolderSite + path, project, bytes);
  }
  NativeFindings folders() { return folder_findings(index(), kFolderPython); }
  NativeFindings paths() {
    const NativeIndex& all = index();
    return search_path_findings(all, walk_native(all, kFolderPython));
  }

 private:
  NativeIndex& index() {
    std::sort(files.files.begin(), files.files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return index_.emplace(files, "x86_64");
  }
  std::optional<NativeIndex> index_;
};

Searched with_torch() {
  Searched environment;
  environment.wheel("torch/lib/libtorch_python.so", "torch").elf.rpath = kFolderTorch;
  environment.wheel("torch/lib/libc10.so", "torch").elf.rpath = kFolderTorch;
  environment.wheel("nvidia/cudnn/lib/libcudnn.so.9", "nvidia_cudnn_cu13").elf.runpath = "$ORIGIN";
  return environment;
}

bool names_it(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The only one.
NativeFinding only_one(const NativeFindings& findings) {
  std::string all;
  for (const NativeFinding& finding : findings) all += finding.what + "\n";
  INFO(all);
  REQUIRE(findings.size() == 1);
  return findings.front();
}

}  // namespace

TEST_CASE("a library of torch's name in a folder that torch's RPATH comes to first is a conflict, and names both") {
  Searched environment = with_torch();
  CHECK(environment.folders().empty());
  environment.wheel("nvidia/cudnn/lib/libc10.so", "nvidia_evil");
  const NativeFinding finding = only_one(environment.folders());
  CHECK(finding.kind == Kind::SameName);
  CHECK(finding.severity == Severity::Refusal);
  CHECK(finding.library == "libc10.so");
  CHECK(names_it(finding.what, "nvidia/cudnn/lib/libc10.so of nvidia_evil"));
  CHECK(names_it(finding.what, "torch/lib/libc10.so of torch"));
}

TEST_CASE(
    "a library in a folder that only sealift-start lists is looked at, and one behind it that comes to be loaded "
    "first") {
  Searched environment = with_torch();
  environment.wheel("nvidia/evil/lib/libc10.so", "nvidia_evil");
  CHECK(only_one(environment.folders()).kind == Kind::SameName);
  Searched behind = with_torch();
  behind.wheel("evil/libc10.so", "evil");
  behind.wheel("evil/_evil.abi3.so", "evil").elf.runpath = "$ORIGIN:$ORIGIN/../torch/lib";
  CHECK(names_it(only_one(behind.folders()).what, "evil/_evil.abi3.so"));
}

TEST_CASE("equal files, a package's own second file, and copies of NVIDIA's libraries are no conflict") {
  Searched environment = with_torch();
  environment.wheel("nvidia/cu13/lib/libcupti.so.13", "nvidia_cuda_cupti");
  environment.wheel("triton/lib/libcupti.so.13", "triton").elf.runpath = "$ORIGIN";
  environment.wheel("nvidia/cu13/lib/libpcsamplingutil.so", "nvidia_cuda_cupti");
  environment.wheel("triton/lib/libpcsamplingutil.so", "triton");
  environment.wheel("nvidia/cu13/lib/libshared.so.1", "nvidia_one", "the same");
  environment.wheel("torch/lib/libshared.so.1", "torch", "the same");
  environment.wheel("torch/extra/libc10.so", "torch");
  environment.wheel("torch/extra/_c.abi3.so", "torch").elf.runpath = "$ORIGIN:$ORIGIN/../lib";
  CHECK(environment.folders().empty());
}

TEST_CASE("a folder that is searched has one owner; NVIDIA's packages share theirs, and so do those of the table") {
  Searched environment = with_torch();
  environment.wheel("nvidia/cu13/lib/libcublas.so.13", "nvidia_cublas").elf.runpath = "$ORIGIN";
  environment.wheel("nvidia/cu13/lib/libcufft.so.12", "nvidia_cufft").elf.runpath = "$ORIGIN";
  environment.wheel("cuquantum/lib/libcustatevec.so.1", "custatevec_cu12").elf.runpath = "$ORIGIN";
  environment.wheel("cuquantum/lib/libcutensornet.so.2", "cutensornet_cu12");
  CHECK(environment.folders().empty());
  environment.wheel("torch/lib/libevil.so.1", "evil");
  const NativeFinding finding = only_one(environment.folders());
  CHECK(finding.kind == Kind::SearchedFolder);
  CHECK(finding.severity == Severity::Refusal);
  CHECK(names_it(finding.what, "torch/lib/libevil.so.1 of evil"));
  CHECK(names_it(finding.what, "one owner"));
}

TEST_CASE("numpy.libs is numpy's, whoever else is the only one to put something there") {
  Searched environment;
  environment.wheel("numpy/_core.abi3.so", "numpy").elf.rpath = "$ORIGIN/../numpy.libs";
  environment.wheel("numpy.libs/libblas-1.so", "numpy");
  CHECK(environment.folders().empty());
  Searched other;
  other.wheel("numpy/_core.abi3.so", "numpy").elf.rpath = "$ORIGIN/../numpy.libs";
  other.wheel("numpy.libs/libblas-1.so", "evil");
  const NativeFinding finding = only_one(other.folders());
  CHECK(finding.kind == Kind::SearchedFolder);
  CHECK(names_it(finding.what, "numpy's by its name"));
  Searched own;  // renamed after it was repaired: nobody else looks there
  own.wheel("cv2/_cv2.abi3.so", "opencv_python_headless").elf.rpath = "$ORIGIN/../opencv_python.libs";
  own.wheel("opencv_python.libs/libavcodec-1.so", "opencv_python_headless");
  CHECK(own.folders().empty());
}

TEST_CASE("the environment's lib and site-packages are everybody's: MKL and TBB lie there, and modules") {
  Searched environment;
  environment.add("lib/libmkl_core.so.2", "mkl").elf.runpath = "$ORIGIN";
  environment.add("lib/libtbb.so.12", "tbb");
  environment.wheel("a/_a.so", "a").elf.rpath = "$ORIGIN/..";
  environment.wheel("_b.so", "b");
  environment.wheel("_c.so", "c");
  environment.wheel("a/libgomp.so.1", "a");
  environment.add("lib/libgomp.so.1", "");  // the interpreter's own, which the packer carries
  CHECK(environment.folders().empty());
}

TEST_CASE(
    "parts of a search path that are wherever a program is started are refused where something is looked for there") {
  for (const std::string path : {":$ORIGIN", "$ORIGIN/x::$ORIGIN", "lib:$ORIGIN", ".", "/proc/self/cwd:$ORIGIN",
                                 "/proc/self/fd/3", "/dev/shm", "ORIGIN/../lib", "@loader_path"})
    for (const bool runpath : {false, true}) {
      CAPTURE(path);
      Searched environment;
      NativeFile& file = environment.wheel("a/_a.abi3.so", "a");
      file.elf.needed = {"liba.so.1", "libc.so.6"};
      (runpath ? file.elf.runpath : file.elf.rpath) = path;
      environment.wheel("a/liba.so.1", "a");
      const NativeFinding finding = only_one(environment.paths());
      CHECK(finding.kind == Kind::SearchPath);
      CHECK(finding.severity == Severity::Refusal);
      CHECK(names_it(finding.what, "a/_a.abi3.so of a"));
    }
}

TEST_CASE("an unsafe search path that finds all before it is a note; of a job's program it is refused all the same") {
  Searched environment;
  NativeFile& file = environment.wheel("a/_a.abi3.so", "a");
  file.elf.needed = {"liba.so.1", "libc.so.6"};
  file.elf.runpath = "$ORIGIN:";
  environment.wheel("a/liba.so.1", "a");
  CHECK(only_one(environment.paths()).severity == Severity::Note);
  NativeFile& program = environment.add("libexec/tool", "");
  program.elf.rpath = "$ORIGIN/../lib:::";
  CHECK(environment.paths().size() == 2);
  CHECK(environment.paths().front().severity == Severity::Refusal);
  Searched plugin;  // triton 3.9 has one, which nothing loads
  NativeFile& file_of = plugin.wheel("triton/plugins/libplugin.so", "triton");
  file_of.elf.needed = {"libstdc++.so.6"};
  file_of.elf.runpath = "$ORIGIN/../lib:/project/build:";
  CHECK(plugin.paths().size() == 2);
  for (const NativeFinding& finding : plugin.paths()) CHECK(finding.severity == Severity::Warning);
  Searched known;  // its path is as NVIDIA publishes it, and it needs libgcc_s
  NativeFile& sparse = known.wheel("nvidia/cusparselt/lib/libcusparseLt.so.0", "nvidia_cusparselt_cu13");
  sparse.elf.needed = {"libgcc_s.so.1"};
  sparse.elf.runpath = "$ORIGIN:";
  CHECK(only_one(known.paths()).severity == Severity::Note);
}

TEST_CASE("folders of the target in search paths are one warning with all of them, also by way of $ORIGIN") {
  Searched environment;
  environment.wheel("a/_a.abi3.so", "a").elf.rpath = "/usr/local/cuda/lib64:$ORIGIN";
  environment.wheel("b/_b.abi3.so", "b").elf.runpath = "${ORIGIN}/../../../../../elsewhere";
  environment.wheel("c/_c.abi3.so", "c").elf.runpath = "$ORIGIN/../../../../lib:${ORIGIN}";
  const NativeFinding finding = only_one(environment.paths());
  CHECK(finding.severity == Severity::Warning);
  CHECK(names_it(finding.what, "/usr/local/cuda/lib64"));
  CHECK(names_it(finding.what, "elsewhere"));
  CHECK_FALSE(names_it(finding.what, "_c.abi3.so"));
}
