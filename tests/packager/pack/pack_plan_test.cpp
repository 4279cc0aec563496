// SPDX-License-Identifier: Apache-2.0
// What cannot be installed together, or would not work on the target, is refused before a byte is written.
#include "packager/pack/pack_plan.hpp"

#include <doctest/doctest.h>

#include "packager/compare/inspect.hpp"
#include "packager/host/process.hpp"
#include "packager/pack/other_cuda.hpp"
#include "tests/packager/workshop.hpp"
#include "tests/support/hostile/hostile_gpu_code.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::read_file;
using sealift::test::Workshop;
using sealift::test::write_file;
namespace fs = std::filesystem;

TEST_CASE("what a wheel becomes on disk is counted in blocks, with scripts, RECORD, INSTALLER and folders") {
  Workshop workshop;
  const bundle::Entry entry = workshop.pack().manifest.entries[2];
  // Two files of the package (4 KiB and 12 KiB), WHEEL, METADATA, entry_points.txt, RECORD, INSTALLER, the script;
  // folders: lib, lib/python3.11, site-packages, demo, demo-1.0.dist-info, bin.
  CHECK(entry.installed_files == 8 + 6);
  CHECK(entry.installed_size == (1 + 3 + 6 + 6) * 4096);
}

TEST_CASE("a wheel with a file that is not what its RECORD says is refused when it is packed") {
  Workshop workshop;
  workshop.add_wheel({.name = "liar",
                      .files = {{"liar.py", "LIE = 1\n"}},
                      .record_digests = {{"liar.py", "sha256=" + std::string(43, 'A')}}});
  CHECK_REFUSED(workshop.pack(), Digest, "liar.py");
  CHECK_REFUSED(workshop.pack(), Digest, "RECORD");  // nor is it remembered as one that was looked at
}

TEST_CASE("a wheel whose RECORD has another size than the file is packed as it was published, with a warning") {
  Workshop workshop;
  workshop.add_wheel({.name = "changed",
                      .files = {{"changed.py", "X = 1\n"}, {"changed.txt", "longer than it was"}},
                      .record_digests = {{"changed.txt", "sha256=" + std::string(43, 'A')}},
                      .record_sizes = {{"changed.txt", "5"}}});
  std::FILE* stream = std::fopen((workshop.dir / "said").c_str(), "w");
  const CreateResult result = workshop.pack("out", 0, {}, stream);
  std::fclose(stream);
  const std::string said = read_file(workshop.dir / "said");
  CHECK_MESSAGE(
      said.find("the RECORD of changed-1.0-py3-none-any.whl (1 file(s)) does not describe the files") != said.npos,
      said);
  CHECK(result.manifest.find(bundle::SafePath::parse("wheels/changed-1.0-py3-none-any.whl", ""))->sha256 ==
        workshop.lock.wheels.back().sha256);
}

TEST_CASE("an interpreter's tar that says other digests than its files have is refused when it is packed") {
  Workshop workshop;
  const fs::path file = workshop.cache() / "sha256" / workshop.lock.interpreter.sha256.hex();
  std::string tar = read_file(file);
  const std::string said = "sha256 " + bundle::sha256(bundle::as_bytes("# os\n")).hex();
  REQUIRE(tar.find(said) != tar.npos);
  tar.replace(tar.find(said), said.size(), "sha256 " + std::string(64, '0'));
  workshop.lock.interpreter.sha256 = bundle::sha256(bundle::as_bytes(tar));
  write_file(workshop.cache() / "sha256" / workshop.lock.interpreter.sha256.hex(), tar);
  CHECK_REFUSED(workshop.pack(), Digest, "lib/python3.11/os.py");
}

TEST_CASE("a program that changed after it was locked is refused") {
  Workshop workshop;
  write_file(workshop.dir / "bin/run", "#!/bin/sh\necho other\n");
  CHECK_REFUSED(workshop.pack(), Digest, "changed after it was locked");
  fs::remove(workshop.dir / "bin/run");
  CHECK_REFUSED(workshop.pack(), Missing, "bin/run");
}

TEST_CASE("wheels, programs and interpreter that would install the same path are refused by name") {
  SUBCASE("two wheels") {
    Workshop workshop;
    workshop.add_wheel({.name = "other", .files = {{"demo/__init__.py", ""}}});
    CHECK_REFUSED(workshop.pack(), Conflict, "demo-1.0-py3-none-any.whl and other-1.0-py3-none-any.whl");
  }
  SUBCASE("a script and a program") {
    Workshop workshop;
    workshop.add_program("bin/demo", "#!/bin/sh\n");
    CHECK_REFUSED(workshop.pack(), Conflict, "bin/demo: demo-1.0-py3-none-any.whl and the program bin/demo");
  }
  SUBCASE("a wheel and the interpreter") {
    Workshop workshop;
    workshop.add_wheel({.name = "evil", .files = {{"evil-1.0.data/data/lib/python3.11/os.py", ""}}});
    CHECK_REFUSED(workshop.pack(), Format, "lib/python3.11/os.py");  // nobody else's, whether it is there or not
  }
}

TEST_CASE("native libraries that do not hold together are refused before anything is written") {
  Workshop workshop;
  const std::string folder = workshop.dir.path().string();
  write_file(workshop.dir / "code.c", "#include <math.h>\ndouble f(double x) { return pow(x, x); }\n");
  run_checked(
      {"cc", "-shared", "-fPIC", "-Wl,-soname,libgone.so.1", "-o", folder + "/libgone.so.1", folder + "/code.c"});
  run_checked({"cc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", folder + "/_c.abi3.so", folder + "/code.c",
               folder + "/libgone.so.1", "-lm"});
  workshop.lock.target.glibc = {2, 17};  // pow of today is GLIBC_2.29
  workshop.add_wheel({.name = "native", .files = {{"native/_c.abi3.so", read_file(workshop.dir / "_c.abi3.so")}}});
  const bundle::Error error = test::refusal([&] { workshop.pack(); });
  CHECK(error.code() == bundle::ErrorCode::Missing);
  CHECK(test::mentions(error, "libgone.so.1 is not in the bundle"));
  CHECK(test::mentions(error, "native-1.0-py3-none-any.whl needs glibc 2.29"));
  CHECK_FALSE(fs::exists(workshop.dir / "out"));

  SUBCASE("and the manifest says the floor of what was packed") {
    workshop.lock.target.glibc = {2, 31};
    workshop.add_wheel({.name = "gone", .files = {{"native.libs/libgone.so.1", read_file(folder + "/libgone.so.1")}}});
    const CreateResult result = workshop.pack();
    CHECK(result.manifest.glibc_floor == bundle::GlibcVersion{2, 29});
    CHECK(result.native.files == 2);
    CHECK(result.manifest.installer_level == 1);
    CHECK_FALSE(result.manifest.environment.runtime);
  }
  SUBCASE("unless a new enough glibc is carried, which the manifest says too") {
    workshop.lock.runtime = {.glibc = {2, 36}, .kernel = "3.2.0"};
    CHECK_REFUSED(workshop.pack(), Format, "do not agree whether glibc is carried");
    workshop.add_interpreter({{"lib/runtime/libc.so.6", {.text = "glibc"}}});
    workshop.add_wheel({.name = "gone", .files = {{"native.libs/libgone.so.1", read_file(folder + "/libgone.so.1")}}});
    const CreateResult result = workshop.pack();
    CHECK(result.manifest.environment.runtime == workshop.lock.runtime);
    CHECK(result.manifest.target.glibc == bundle::GlibcVersion{2, 17});
    CHECK(result.manifest.glibc_floor == bundle::GlibcVersion{2, 29});
    CHECK(result.manifest.installer_level == 2);
  }
  SUBCASE("and the manifest says the driver that CUDA needs") {
    run_checked({"cc", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libcudart.so.13", "-o", folder + "/libcudart",
                 folder + "/code.c"});
    workshop.lock.target.glibc = {2, 31};
    workshop.add_wheel({.name = "gone",
                        .files = {{"native.libs/libgone.so.1", read_file(folder + "/libgone.so.1")},
                                  {"native.libs/libcudart.so.13", read_file(folder + "/libcudart")}}});
    const CreateResult result = workshop.pack();
    CHECK(result.manifest.driver_floor == "580");
    CHECK(result.manifest.installer_level == 2);
  }
}

TEST_CASE("a bundle for other GPUs than the profile has is refused, or packed where the job overrules it") {
  Workshop workshop;
  const std::string torch = test::elf_with_gpu_code(test::fat_binary({"sm_75", "sm_90a"}));
  workshop.add_wheel({.name = "torch", .files = {{"torch/lib/libkernels.so", torch}}});
  workshop.lock.target.gpus = {"8 x Tesla V100-SXM2-32GB"};
  const bundle::Error error = test::refusal([&] { workshop.pack(); });
  CHECK(error.code() == bundle::ErrorCode::Platform);
  CHECK(test::mentions(error, "torch-1.0-py3-none-any.whl has no code that 8 x Tesla V100-SXM2-32GB (sm_70) can run"));
  CHECK_FALSE(fs::exists(workshop.dir / "out"));
  workshop.lock.overruled = {"gpu"};
  const CreateResult result = workshop.pack();
  CHECK(read_lock(workshop.dir / "demo.lock.toml").overruled == workshop.lock.overruled);
  CHECK(result.manifest.overruled == workshop.lock.overruled);
  CHECK(result.manifest.gpu_code == std::map<std::string, std::string>{{"torch-1.0", "sm_75 sm_90a"}});
  CHECK(result.manifest.installer_level == 4);
  const std::string shown = inspect_text(inspect(result.folder, std::nullopt));
  CHECK(shown.find("torch-1.0: sm_75 sm_90a") != std::string::npos);
  CHECK(shown.find("overruled  gpu") != std::string::npos);
}

TEST_CASE("files in another one's package are packed by a rule, which the lock, the manifest and inspect show") {
  Workshop workshop;
  workshop.add_wheel({.name = "host", .files = {{"host/__init__.py", "x"}}});
  workshop.add_wheel({.name = "plug", .files = {{"host/plugins/extra.py", "y"}}});
  CHECK_REFUSED(workshop.pack("none"), Conflict, "into = \"host/plugins\"");
  workshop.lock.shared = {{.package = "plug", .into = "host/plugins"}};
  const CreateResult result = workshop.pack("one");
  CHECK(read_lock(workshop.dir / "demo.lock.toml").shared == workshop.lock.shared);
  CHECK(result.manifest.installer_level == 7);
  for (const auto& placement : result.manifest.environment.placements)
    CHECK(placement.shared.size() == (placement.entry.text() == "wheels/plug-1.0-py3-none-any.whl" ? 1 : 0));
  CHECK(
      inspect_text(inspect(result.folder, std::nullopt)).find("has files in host/plugins, a package of another one") !=
      std::string::npos);
}

TEST_CASE("packages that only extend their path, equal programs and packages that require each other need no rule") {
  Workshop workshop;
  const std::string pkgutil = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n";
  const std::string main = "[console_scripts]\nflow = flow.cli:main\n";
  workshop.add_wheel({.name = "nsa", .files = {{"acme/__init__.py", pkgutil}, {"acme/cloud/__init__.py", "a"}}});
  workshop.add_wheel(
      {.name = "nsb", .files = {{"acme/__init__.py", "# b\n" + pkgutil}, {"acme/pre/__init__.py", "b"}}});
  workshop.add_wheel(
      {.name = "core", .files = {{"flow/__init__.py", "x"}, {"flow/cli.py", "y"}}, .entry_points = main});
  workshop.add_wheel({.name = "skinny",
                      .files = {{"flow/more.py", "z"}},
                      .entry_points = main,
                      .extra_metadata = "Requires-Dist: core[fast]>=1; python_version > '3'\n"});
  const CreateResult result = workshop.pack();
  std::map<std::string, std::vector<bundle::SafePath>> shared, left_out;
  for (const auto& placement : result.manifest.environment.placements) {
    if (!placement.shared.empty()) shared[placement.entry.text()] = placement.shared;
    if (!placement.left_out.empty()) left_out[placement.entry.text()] = placement.left_out;
  }
  const auto path = [](const char* text) { return std::vector{bundle::SafePath::parse(text, "")}; };
  CHECK(shared ==
        std::map<std::string, std::vector<bundle::SafePath>>{{"wheels/nsb-1.0-py3-none-any.whl", path("acme/pre")},
                                                             {"wheels/skinny-1.0-py3-none-any.whl", path("flow")}});
  CHECK(left_out == std::map<std::string, std::vector<bundle::SafePath>>{
                        {"wheels/nsb-1.0-py3-none-any.whl", path("lib/python3.11/site-packages/acme/__init__.py")},
                        {"wheels/skinny-1.0-py3-none-any.whl", path("bin/flow")}});
}

TEST_CASE("a rule in the job gives a path of two wheels to one of them, and the other leaves it out") {
  Workshop workshop;
  const std::string place = "lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2";
  const auto add = [&](const std::string& name, const std::string& library) {
    workshop.add_wheel({.name = name, .files = {{"nvidia/nccl/lib/libnccl.so.2", library}, {name + ".py", ""}}});
  };
  add("nvidia_nccl_cu12", "older");
  add("nvidia_nccl_cu13", "newer");
  CHECK_REFUSED(workshop.pack("none"), Conflict, "nvidia_nccl_cu12-1.0-py3-none-any.whl and nvidia_nccl_cu13");
  CHECK_REFUSED(workshop.pack("none"), Conflict, "[[owner]]");
  workshop.lock.owners = {{.path = "nvidia/nccl", .package = "nvidia-nccl-cu13"}};
  const CreateResult result = workshop.pack("one");
  CHECK(read_lock(workshop.dir / "demo.lock.toml").owners == workshop.lock.owners);
  CHECK(result.manifest.installer_level == 2);
  for (const auto& placement : result.manifest.environment.placements) {
    const bool loser = placement.entry.text() == "wheels/nvidia_nccl_cu12-1.0-py3-none-any.whl";
    REQUIRE(placement.left_out.size() == (loser ? 1 : 0));
    if (loser) CHECK(placement.left_out[0].text() == place);
  }
  CHECK(inspect_text(inspect(result.folder, std::nullopt)).find(place + ", which another package owns") !=
        std::string::npos);
  workshop.lock.owners = {{.path = place, .package = "nvidia-nccl-cu14"}};
  CHECK_REFUSED(workshop.pack("two"), Usage, "it does not have " + place);
}

TEST_CASE("a package's start-up file needs a rule for that package with its digest, which lock and manifest name") {
  Workshop workshop;
  const std::string line = "import sys; sys.flags\n";
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes(line));
  workshop.add_wheel({.name = "My_Dsl", .files = {{"my_dsl.pth", line}, {"my_dsl/__init__.py", ""}}});
  CHECK_REFUSED(workshop.pack("none"), Format, digest.hex());
  CHECK_REFUSED(workshop.pack("none"), Format, "[[startup]]");
  workshop.lock.startup_files = {{.package = "demo", .sha256 = digest}};
  CHECK_REFUSED(workshop.pack("another"), Format, "when Python starts");
  workshop.lock.startup_files = {{.package = "my-dsl", .sha256 = digest}};
  const CreateResult result = workshop.pack("one");
  CHECK(read_lock(workshop.dir / "demo.lock.toml").startup_files == workshop.lock.startup_files);
  CHECK(result.manifest.installer_level == 3);
  CHECK(result.manifest.environment.startup_files == std::vector<bundle::Digest>{digest});
  const std::string shown = inspect_text(inspect(result.folder, std::nullopt));
  CHECK(shown.find("SHA-256 " + digest.hex() + " may run code") != std::string::npos);
  workshop.lock.startup_files.push_back({.package = "demo", .sha256 = bundle::sha256(bundle::as_bytes("else"))});
  CHECK_REFUSED(workshop.pack("two"), Usage, "1 of 2 were found");
}

TEST_CASE("what another wheel's start-up file would run is refused when a bundle is made, too") {
  Workshop workshop;
  workshop.add_wheel({.name = "spaced", .files = {{"spaced.pth", "spaced_path\n"}, {"spaced_path/a.py", ""}}});
  workshop.pack("good");
  workshop.add_wheel({.name = "evil", .files = {{"spaced_path/sitecustomize.py", ""}}});
  CHECK_REFUSED(workshop.pack("bad"), Conflict, "spaced_path");
}

TEST_CASE("a wheel that could not be installed is refused before anything is written") {
  Workshop workshop;
  workshop.add_wheel({.name = "liar",
                      .files = {{"liar.pth", "liar_path\n"}},
                      .record_digests = {{"liar.pth", "sha256=" + std::string(43, 'A')}},
                      .record_sizes = {{"liar.pth", "5"}}});
  CHECK_REFUSED(workshop.pack(), Format, "liar.pth");
  CHECK_FALSE(fs::exists(workshop.dir / "out"));
}

TEST_CASE("all wheels that could not be installed are told in one message, each with what to do") {
  Workshop workshop;
  const std::string line = "import sys; sys.flags\n";
  workshop.add_wheel({.name = "liar",
                      .files = {{"liar.pth", "liar_path\n"}},
                      .record_digests = {{"liar.pth", "sha256=" + std::string(43, 'A')}},
                      .record_sizes = {{"liar.pth", "5"}}});
  workshop.add_wheel({.name = "my_dsl", .files = {{"my_dsl.pth", line}}});
  const bundle::Error error = test::refusal([&] { workshop.pack(); });
  INFO(error.what());
  CHECK(error.code() == bundle::ErrorCode::Format);
  CHECK(test::mentions(error, "2 wheels are not acceptable"));
  CHECK(test::mentions(error, "liar-1.0-py3-none-any.whl"));
  CHECK(test::mentions(error,
                       "package = \"my-dsl\"\n            sha256 = \"" + bundle::sha256(bundle::as_bytes(line)).hex()));
  CHECK(test::mentions(error, "excludes = [\"my-dsl\"]"));
}

TEST_CASE("a library that a program expects from a wheel must be in one") {
  Workshop workshop;
  workshop.lock.programs[0].from_wheels = {"libdemo.so"};
  workshop.pack("one");
  workshop.lock.programs[0].from_wheels = {"libother.so"};
  CHECK_REFUSED(workshop.pack("two"), Missing, "libother.so");
}

TEST_CASE("which CUDA a library is of is told by those whose number is CUDA's") {
  CHECK(cuda_of_library("libcudart.so.12") == 12u);
  CHECK(cuda_of_library("libcublasLt.so.13") == 13u);
  for (const char* other : {"libcufft.so.11", "libcudart.so", "libcudart.so.x", "libc.so.6"})
    CHECK_FALSE(cuda_of_library(other));
}
