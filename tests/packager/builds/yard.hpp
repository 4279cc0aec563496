// SPDX-License-Identifier: Apache-2.0
// Sources for tests of builds: projects whose build backend lies beside them, so that no index is needed.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "packager/builds/built_wheels.hpp"
#include "packager/host/process.hpp"
#include "sealift/bundle/wheel/wheel.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_wheel.hpp"

namespace sealift::test {

using namespace sealift::packager;

inline const std::filesystem::path kPython = "/usr/bin/python3.11";

inline std::filesystem::path uv_program() {
  const char* named = std::getenv("SEALIFT_UV");
  return named != nullptr ? named : SEALIFT_UV_BESIDE;
}

inline bool no_tools() {
  if (std::filesystem::exists(kPython) && std::filesystem::exists(uv_program())) return false;
  sealift::test::left_out("needs ", kPython.string(), " and uv (cmake/prerequisites.sh, or SEALIFT_UV)");
  return true;
}

// A build backend of thirty lines. What the wheel holds, tests write into source.py as a dictionary FILES.
inline constexpr const char* kBackend = R"(
import base64, hashlib, os, zipfile
NAME, VERSION, TAG, FILES = "demo", "1.0", "py3-none-any", {"demo/__init__.py": b"ANSWER = 42\n"}
REQUIRES, BUILD_REQUIRES = [], []
if os.path.exists("source.py"):
    exec(open("source.py").read())
def prepare_metadata_for_build_wheel(folder, settings=None):
    info = "%s-%s.dist-info" % (NAME, VERSION)
    os.makedirs(os.path.join(folder, info))
    with open(os.path.join(folder, info, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (NAME, VERSION) + "".join(
            "Requires-Dist: %s\n" % line for line in REQUIRES))
    return info
def get_requires_for_build_wheel(settings=None):
    return BUILD_REQUIRES
def build_wheel(folder, settings=None, metadata=None):
    info = "%s-%s.dist-info/" % (NAME, VERSION)
    files = dict(FILES)
    files[info + "METADATA"] = ("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (NAME, VERSION) + "".join(
        "Requires-Dist: %s\n" % line for line in REQUIRES)).encode()
    files[info + "WHEEL"] = b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: %s\n" % TAG.encode()
    record = ""
    name = "%s-%s-%s.whl" % (NAME, VERSION, TAG)
    with zipfile.ZipFile(os.path.join(folder, name), "w") as zip:
        for path, data in sorted(files.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += "%s,sha256=%s,%d\n" % (path, digest, len(data))
            zip.writestr(zipfile.ZipInfo(path), data)
        zip.writestr(zipfile.ZipInfo(info + "RECORD"), record + info + "RECORD,,\n")
    return name
)";
inline constexpr const char* kProject =
    "[project]\nname = \"demo\"\nversion = \"1.0\"\n[build-system]\nrequires = []\nbuild-backend = \"backend\"\n"
    "backend-path = [\".\"]\n";

// Sources in a folder of their own, what builds them, and a cache.
struct Yard {
  TempDir dir;
  Cache cache{dir / "cache"};
  bundle::Progress progress{nullptr};
  bundle::Target target{.arch = "x86_64", .glibc = {2, 36}};
  BuildTools tools{
      .uv = uv_program(), .python = kPython, .python_version = version(), .build_constraints = {}, .index_words = {}};

  static std::string version() {
    const std::string said = run_checked({kPython.string(), "-c", "import platform; print(platform.python_version())"});
    return said.substr(0, said.size() - 1);
  }
  // A project in a folder; `source` is Python that changes what its backend does.
  SourcePackage folder(const std::string& name, const std::string& source = {}) const {
    write_file(dir / (name + "/pyproject.toml"), kProject);
    write_file(dir / (name + "/backend.py"), kBackend);
    if (!source.empty()) write_file(dir / (name + "/source.py"), source);
    SourcePackage package{.name = "demo"};
    package.kind = SourceKind::Folder;
    package.folder = dir / name;
    return package;
  }
  // The same as an sdist that a server would have.
  SourcePackage sdist(const std::string& source = {}) const {
    folder("demo-1.0", source);
    const std::string file = (dir / "demo-1.0.tar.gz").string();
    run_checked({"tar", "-C", dir.path().string(), "-czf", file, "demo-1.0"});
    SourcePackage package{.name = "demo", .version = "1.0"};
    package.url = "file://" + file;
    package.sha256 = digest_of_file(file);
    return package;
  }
  BuiltWheels build(const std::vector<SourcePackage>& sources, const std::vector<StartupRule>& startup_files = {}) {
    const auto needs = [] { return std::map<std::string, std::string>{{"demo", "app, tool"}}; };
    return build_sources(sources, tools, target, cache, progress, needs, startup_files);
  }
  // A package of an index of its own, which the build of demo gets.
  void give(const std::string& name, std::map<std::string, std::string> files, const std::string& version = "1.0") {
    const std::string folder = "index/" + name + "/";
    std::string module = name;
    std::replace(module.begin(), module.end(), '-', '_');
    const TinyWheel wheel{.name = module, .version = version, .files = std::move(files)};
    write_file(dir / (folder + wheel.file_name()), make_wheel(wheel));
    std::string page =
        std::filesystem::exists(dir / (folder + "index.html")) ? read_file(dir / (folder + "index.html")) : "";
    write_file(dir / (folder + "index.html"),
               page + "<a href=\"" + wheel.file_name() + "\">" + wheel.file_name() + "</a>");
    tools.index_words = {"--default-index", "file://" + (dir / "index").string()};
    tools.extras["demo"].requirements.push_back(name);
  }
  std::string text_of(const LockedWheel& wheel, const std::string& path) const {
    bundle::FileSource bytes(cache.path(wheel.sha256));
    bundle::Wheel opened(bytes, wheel.file_name);
    std::string text;
    for (const bundle::WheelFile& file : opened.files())
      if (file.path == path) opened.extract(file, [&](bundle::ByteView piece) { text += bundle::as_text(piece); });
    return text;
  }
  void rebuild(const LockedWheel& wheel) {
    rebuild_missing({wheel}, [&] { return tools; }, cache, progress, {});
  }
};

}  // namespace sealift::test
