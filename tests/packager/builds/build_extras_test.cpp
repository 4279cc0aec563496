// SPDX-License-Identifier: Apache-2.0
// What a job gives to a build, and what is said about a build that failed.
#include "packager/builds/built_wheels.hpp"

#include <doctest/doctest.h>

#include "packager/builds/build_remedy.hpp"
#include "packager/builds/build_step.hpp"
#include "tests/packager/builds/yard.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_wheel.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::kPython;
using sealift::test::no_tools;
using sealift::test::write_file;
using sealift::test::Yard;
namespace fs = std::filesystem;

TEST_CASE("a build gets the packages and variables that the job gives it, and NVIDIA's compiler where they bring it") {
  if (no_tools()) return;
  Yard yard;
  const SourcePackage source = yard.sdist(
      "import os, tool\nFILES['demo/said.txt'] = '|'.join([tool.WORD, os.environ['MODE'], "
      "os.environ['HERE'], os.environ['CUDA_HOME'], os.environ['PATH']]).encode()\n");
  CHECK_REFUSED(yard.build({source}), Platform, "[python.extra_build_dependencies]\n            demo = [\"tool\"]");
  const test::TinyWheel tool{.name = "tool",
                             .files = {{"tool.py", "WORD = 'made'\n"}, {"nvidia/cu13/bin/nvcc", "#!/bin/sh\n"}}};
  write_file(yard.dir / ("index/tool/" + tool.file_name()), test::make_wheel(tool));
  write_file(yard.dir / "index/tool/index.html", "<a href=\"" + tool.file_name() + "\">" + tool.file_name() + "</a>");
  yard.tools.index_words = {"--default-index", "file://" + (yard.dir / "index").string()};
  yard.tools.extras["demo"] = {.requirements = {"tool"}, .variables = {{"MODE", "fast"}, {"HERE", "${BUILD}/tool.py"}}};
  const LockedWheel wheel = yard.build({source}).wheels.at(0);
  REQUIRE(wheel.built_from->requirements.size() == 1);
  CHECK(wheel.built_from->requirements[0].starts_with("tool==1.0 --hash=sha256:"));
  bundle::FileSource bytes(yard.cache.path(wheel.sha256));
  bundle::Wheel opened(bytes, wheel.file_name);
  std::string said;
  for (const bundle::WheelFile& file : opened.files())
    if (file.path == "demo/said.txt")
      opened.extract(file, [&](bundle::ByteView piece) { said += bundle::as_text(piece); });
  INFO(said);
  CHECK(said.starts_with("made|fast|" + yard.cache.root().string()));
  CHECK(said.find("/site-packages/tool.py|") != said.npos);
  CHECK(said.find("/site-packages/nvidia/cu13|") != said.npos);
  CHECK(said.find("/site-packages/nvidia/cu13/bin:") != said.npos);
  fs::remove(yard.cache.path(wheel.sha256));
  yard.rebuild(wheel);  // with the same variables, from the lock
  CHECK(yard.cache.contains(wheel.sha256));
}

TEST_CASE("a build that looks for a library of NVIDIA's toolkit by its plain name finds it, in lib and in lib64") {
  if (no_tools()) return;
  Yard yard;
  const SourcePackage source = yard.sdist(
      "import os\nhome = os.environ['CUDA_HOME']\nFILES['demo/said.txt'] = "
      "'|'.join(open(home + '/' + name).read() for name in ('lib/libcudart.so', 'lib64/libcudart.so')).encode()\n");
  yard.give("tool", {{"nvidia/cu13/bin/nvcc", "#!/bin/sh\n"}, {"nvidia/cu13/lib/libcudart.so.13", "cudart"}});
  const LockedWheel wheel = yard.build({source}).wheels.at(0);
  CHECK(yard.text_of(wheel, "demo/said.txt") == "cudart|cudart");
}

TEST_CASE("a build with a compiler of NVIDIA's that is newer than its assembler is refused before it is fetched") {
  if (no_tools()) return;
  Yard yard;
  const SourcePackage source = yard.sdist();
  yard.give("nvidia-cuda-nvcc", {{"nvidia/cu13/bin/nvcc", "#!/bin/sh\n"}}, "13.0.88");
  yard.give("nvidia-nvvm", {{"nvidia/cu13/nvvm/bin/cicc", "#!/bin/sh\n"}}, "13.5.37");
  CHECK_REFUSED(yard.build({source}), Platform, "\"nvidia-nvvm==13.0.*\"");
  yard.give("nvidia-nvvm", {{"nvidia/cu13/nvvm/bin/cicc", "#!/bin/sh\n"}}, "13.0.9");
  yard.tools.extras["demo"].requirements = {"nvidia-cuda-nvcc", "nvidia-nvvm==13.0.*"};
  CHECK(yard.build({source}).wheels.size() == 1);
}

TEST_CASE("what a compiler said is shown, however long the traceback is behind it") {
  std::string log = "cc x.c\nx.c:1:2: error: 'y' undeclared\nptxas x.ptx, line 9; fatal   : Unsupported .version 9.5\n";
  for (int i = 0; i < 40; ++i) log += "  File \"setuptools.py\", line " + std::to_string(i) + "\n";
  log += "RuntimeError: Error compiling objects for extension\n";
  const std::string end = end_of_log(log);
  CHECK(
      end.starts_with("x.c:1:2: error: 'y' undeclared\nptxas x.ptx, line 9; fatal   : Unsupported .version 9.5\n…\n"));
  CHECK(end.ends_with("RuntimeError: Error compiling objects for extension"));
  CHECK(end.find("line 20") == end.npos);
  CHECK(end_of_log("x.c:1:2: error: 'y' undeclared\n") == "x.c:1:2: error: 'y' undeclared");  // said once
  CHECK(build_remedy("demo", end).find("demo = [\"nvidia-nvvm==13.0.*\"]") != std::string::npos);
}

TEST_CASE("a failed build's remedy fits the end of its log") {
  const auto says = [](const std::string& log, const std::string& remedy) {
    const std::string given = build_remedy("demo", log);
    CHECK_MESSAGE(given.find(remedy) != given.npos, log, " -> ", given);
  };
  says("ModuleNotFoundError: No module named 'torch'", "demo = [\"torch\"]");
  says("ModuleNotFoundError: No module named 'a.b'", "demo = [\"a\"]");
  says("No module named 'pkg_resources'", "build_constraints = [\"setuptools<81\"]");
  says("RuntimeError: CUDA_HOME environment variable is not set", "cuda-toolkit[nvcc");
  says("fatal error: Python.h: No such file or directory", "python3-dev");
  says("x.c:1:10: fatal error: zlib.h: No such file or directory", "zlib.h");
  says("error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory", "build-essential");
  says("urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", "no network");
  says("FileNotFoundError: [Errno 2] No such file or directory: 'cmake'", "\"cmake\", \"ninja\"");
  says("LookupError: setuptools-scm was unable to detect version for /x",
       "[python.extra_build_variables.demo]\n            SETUPTOOLS_SCM_PRETEND_VERSION_FOR_DEMO = \"1.0\"");
  says("FileNotFoundError: [Errno 2] No such file or directory: 'cargo'", "/.cargo/bin, /usr/local/bin and /usr/bin");
  says("    Updating crates.io index\nwarning: spurious network error (3 tries remaining)", "cargo vendor");
  CHECK(build_remedy("demo", "something else").empty());
  CHECK(build_remedy("demo", "No module named 'evil\"] rm'").empty());
}

TEST_CASE("everything that cannot be built is one list, with the end of each log and who needs it") {
  if (no_tools()) return;
  Yard yard;
  SourcePackage broken = yard.folder("broken", "raise SystemExit('no compiler here')\n"), good = yard.sdist();
  SourcePackage empty = broken;
  empty.name = "empty";
  empty.folder = yard.dir / "nothing";
  write_file(empty.folder / "README", "");
  const bundle::Error refused = test::refusal([&] { yard.build({broken, good, empty}); });
  INFO(refused.what());
  CHECK(refused.code() == bundle::ErrorCode::Platform);
  CHECK(test::mentions(refused, "2 of 3 package(s)"));
  CHECK(test::mentions(refused, "demo (needed by app, tool): the build failed"));
  CHECK(test::mentions(refused, "no compiler here"));
  CHECK(test::mentions(refused, "empty: there is no Python project in the source"));
}

TEST_CASE("a built wheel's start-up file is refused unless the job allows these bytes of this package") {
  if (no_tools()) return;
  Yard yard;
  const std::string line = "import sys; sys.flags\n";
  const SourcePackage source =
      yard.folder("starts", "FILES = {'demo/__init__.py': b'', 'demo.pth': b'import sys; sys.flags\\n'}\n");
  CHECK_REFUSED(yard.build({source}), Platform, "runs code when Python starts");
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes(line));
  CHECK_REFUSED(yard.build({source}, {{.package = "other", .sha256 = digest}}), Platform, "when Python starts");
  CHECK(yard.build({source}, {{.package = "demo", .sha256 = digest}}).wheels.size() == 1);
}
