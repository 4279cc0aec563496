// SPDX-License-Identifier: Apache-2.0
// The table of what a wheel may place, held against what real wheels place. What it refuses is rows W13 and W15 of
// tests/HOSTILE.md.
#include "sealift/bundle/wheel/wheel_places.hpp"

#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

struct OpenedWheel {
  MemorySource source;
  Wheel wheel;
  OpenedWheel(const std::string& bytes, const std::string& name)
      : source(Bytes(as_bytes(bytes).begin(), as_bytes(bytes).end()), name), wheel(source, name) {}
  explicit OpenedWheel(const TinyWheel& tiny) : OpenedWheel(make_wheel(tiny), tiny.file_name()) {}
};

}  // namespace

TEST_CASE("what real wheels place is allowed: jupyter, tbb, intel-openmp, ninja, debugpy, NVIDIA's libraries") {
  const std::pair<Scheme, const char*> good[] = {
      {Scheme::Data, "etc/jupyter/nbconfig/notebook.d/widgets.json"},
      {Scheme::Data, "share/jupyter/kernels/python3/kernel.json"},
      {Scheme::Data, "share/man/man1/ttx.1"},
      {Scheme::SitePackages, "org.jpype.jar"},
      {Scheme::SitePackages, "orgs/__init__.py"},
      {Scheme::SitePackages, "audioop/__init__.py"},
      {Scheme::SitePackages, "demo/nt.py"},
      {Scheme::Data, "lib/libiomp5.so"},
      {Scheme::Data, "lib/libtbb.so.12.20"},
      {Scheme::Data, "lib/pkgconfig/openmp.pc"},
      {Scheme::Data, "lib/cmake/TBB/TBBConfig.cmake"},
      {Scheme::Data, "lib/My_Demo/plugin.so"},
      {Scheme::Data, "opt/compiler/include/omp.h"},
      {Scheme::Data, "include/omp.h"},
      {Scheme::Data, "external/ffmpeg/src/ffmpeg-9.0.1.tar.xz"},  // pynvvideocodec
      {Scheme::Data, "My.Demo/data.bin"},
      {Scheme::Data, "bin/my-demo"},
      {Scheme::Scripts, "ninja"},
      {Scheme::Scripts, "python-argcomplete-tcsh"},
      {Scheme::Scripts, "f2py"},
      {Scheme::Headers, "Python.h"},
      {Scheme::SitePackages, "my_demo-1.0.dist-info/METADATA"},
      {Scheme::SitePackages, "setuptools/_vendor/wheel-0.43.0.dist-info/METADATA"},
      {Scheme::SitePackages, "debugpy/_vendored/pydevd/pydev_sitecustomize/sitecustomize.py"},
      {Scheme::SitePackages, "nvidia/demo/__init__.py"},
      {Scheme::Data, "share/unsealift/x"},
      {Scheme::Data, "share/doc/sealift.txt"},
      {Scheme::Scripts, "unsealift"},
      {Scheme::SitePackages, "torch/lib/libgomp-a34b3233.so.1"},
      {Scheme::SitePackages, "numpy.libs/libgcc_s-2d945d6c.so.1"},
      {Scheme::SitePackages, "6ec57f84c680d3a3778b__mypyc.cpython-311-x86_64-linux-gnu.so"},
      {Scheme::SitePackages, "typing.py"},  // a backport that the standard library's own comes before
  };
  for (const auto& place : good) {
    const auto& [scheme, path] = place;
    CAPTURE(place.second);
    const auto fault = fault_of_place(scheme, path, "my_demo-1.0.dist-info");
    CHECK_MESSAGE(!fault, (fault ? fault->why : ""));
  }
}

TEST_CASE("NVIDIA's packages, by their projects' names, have the folders of its libraries, also together") {
  for (const char* info :
       {"nvidia_cudnn_cu13-9.dist-info", "nvidia_cublas-13.dist-info", "NVIDIA.nccl.cu12-2.dist-info"})
    for (const char* path : {"nvidia/cu13/lib/libcudart.so.13", "nvidia/cudnn/lib/libcudnn.so.9"})
      CHECK_FALSE(fault_of_place(Scheme::SitePackages, path, info));
  for (const char* info : {"torch-2.dist-info", "nvidiary-1.dist-info", "not_nvidia_nccl-1.dist-info"})
    CHECK(fault_of_place(Scheme::SitePackages, "nvidia/nccl/lib/libnccl.so.2", info));
}

TEST_CASE("documents and examples may lie in the root, where setup.py's data_files put them") {
  for (const char* path : {"README.md", "LICENSE", "licence.txt", "CHANGELOG.rst", "examples/a.yaml", "docs/x",
                           "tests/a.py", "THIRD_PARTY_LICENSES", "pkgconfig/asio.pc"})
    CHECK_FALSE(fault_of_place(Scheme::Data, path, "my_demo-1.0.dist-info"));
}

TEST_CASE("a folder of the root that no table names is refused, however harmless it looks, and so is a file there") {
  for (const char* path :
       {"externals/x", "external", "example/x.py", "README.py", "readme.cfg", "nltk_data/x.pickle", "models/x",
        "data/x", "local/lib/python3.11/dist-packages/x.py", "conda-meta/history", "apt/Packages", "LICENSES"}) {
    CAPTURE(path);
    CHECK(fault_of_place(Scheme::Data, path, "my_demo-1.0.dist-info"));
  }
}

TEST_CASE("a project's name opens no folder that is somebody else's") {
  for (const char* info :
       {"python3.11-1.dist-info", "runtime-1.dist-info", "lib-1.dist-info", "libexec-1.dist-info", "bin-1.dist-info",
        "python311.zip-1.dist-info", "glibc_hwcaps-1.dist-info", "x86_64-1.dist-info", "aarch64-1.dist-info",
        "atomics-1.dist-info", "gconv-1.dist-info", "tcl8-1.dist-info"})
    for (const char* path :
         {"lib/python3.11/os.py", "lib/runtime/libc.so.6", "libexec/python3.11", "lib64/x", "lib/python311.zip",
          "bin/sh", "lib/glibc-hwcaps/x86-64-v3/libz.so.1", "lib/x86_64/libz.so.1", "lib/aarch64/libz.so.1",
          "lib/atomics/libz.so.1", "lib/gconv/gconv-modules", "lib/tcl8/init.tcl"}) {
      CAPTURE(info);
      CAPTURE(path);
      CHECK(fault_of_place(Scheme::Data, path, info));
    }
  CHECK(fault_of_place(Scheme::Headers, "evil.h", "..-1.0.dist-info"));
}

TEST_CASE("setuptools may bring its own start-up line, and says which folders and namespaces a wheel adds") {
  const std::string line =
      "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; enabled and "
      "__import__('_distutils_hack').add_shim(); \n";
  const OpenedWheel setuptools(TinyWheel{.name = "setuptools",
                                         .files = {{"distutils-precedence.pth", line},
                                                   {"_distutils_hack/__init__.py", "x"},
                                                   {"extra.pth", "# c\n\nextra/inner\n"},
                                                   {"extra/inner/module.py", "x"}}});
  CHECK(setuptools.wheel.startup().folders == std::vector<std::string>{"extra/inner"});
  CHECK(setuptools.wheel.startup().namespaces.empty());
}

TEST_CASE("compiled code that Python compares with its source in the same wheel is allowed, and left out") {
  for (const char flags : {'\0', '\3'}) {
    const OpenedWheel opened(TinyWheel{.files = {{"demo/a.py", "x"},
                                                 {"demo/__pycache__/a.cpython-311.opt-1.pyc",
                                                  std::string("\xa7\r\r\n") + flags + std::string(11, '\0')}}});
    CHECK(opened.wheel.left_out_bytecode() == 1);
    for (const WheelFile& file : opened.wheel.files()) CHECK_FALSE(file.path.ends_with(".pyc"));
  }
}

TEST_CASE("compiled code of no module, or that Python would not compare with its source, is left out too") {
  const OpenedWheel opened(
      TinyWheel{.files = {{"demo/__pycache__/gone.cpython-311.pyc", "x"},
                          {"__pycache__/other.cpython-27-PYTEST.pyc", ""},
                          {"demo/a.py", "x"},
                          {"demo/__pycache__/a.cpython-311.pyc", std::string("\xa7\r\r\n\1\0\0\0", 8)}}});
  CHECK(opened.wheel.left_out_bytecode() == 3);
  for (const WheelFile& file : opened.wheel.files()) CHECK_FALSE(file.path.ends_with(".pyc"));
}

TEST_CASE("a wheel completes the commands that it brings") {
  for (const char* name : {"tool", "tool.bash", "_tool", "other"})
    CHECK_NOTHROW(OpenedWheel(TinyWheel{
        .files = {{std::string("demo-1.0.data/data/share/bash-completion/completions/") + name, "complete tool"},
                  {"demo-1.0.data/scripts/other", "#!python\n"}},
        .entry_points = "[console_scripts]\ntool = demo:main\n"}));
}

TEST_CASE("a job may place programs, libraries and data, also under names of the system's, but nothing of Python's") {
  for (const char* path :
       {"bin/openssl", "bin/sh", "bin/sealift-train", "libexec/self", "lib/libGL.so.1", "lib/libsealift_train_cuda.so",
        "models/m/pyvenv.cfg", "data/activate", "hello", "bin/python3", "etc/site.conf", "share/python3/x",
        "lib/tcl8.6/init.tcl", "bin/tools/python3"}) {
    CAPTURE(path);
    CHECK_FALSE(fault_of_entry_place(path, "bin/python3"));
  }
  CHECK(fault_of_entry_place("bin/python3", "bin/python3.11"));
  CHECK(fault_of_entry_place("LIB/runtime/libc.so.6", "bin/python3.11"));
}
