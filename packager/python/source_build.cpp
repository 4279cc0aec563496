// SPDX-License-Identifier: Apache-2.0
// Unpack -> read [build-system] -> environment -> hooks; see source_build.hpp.
#include "packager/python/source_build.hpp"

#include <algorithm>
#include <fstream>

#include "packager/host/uv.hpp"
#include "packager/job/toml_file.hpp"
#include "packager/python/requirement_hashes.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// Calls one hook of a build backend. Arguments: hook, backend, output folder, folders of an in-tree backend.
constexpr const char* kHook = R"(
import sys
sys.path[:] = [path for path in sys.path if path]
import importlib, os
hook, backend, answer, paths = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
sys.path[:0] = [os.path.abspath(path) for path in paths]
sys.argv[:] = ["setup.py"]
module, _, attributes = backend.partition(":")
target = importlib.import_module(module)
for name in filter(None, attributes.split(".")):
    target = getattr(target, name)
if hook == "requires":
    wanted = getattr(target, "get_requires_for_build_wheel", lambda settings=None: [])(None)
    with open(os.path.join(answer, "requires.txt"), "w") as file:
        file.write("".join(line + "\n" for line in wanted))
else:
    target.build_wheel(answer)
)";

struct BuildSystem {
  std::vector<std::string> requires_;
  std::string backend = "setuptools.build_meta:__legacy__";
  std::vector<std::string> paths;
};

std::string tail(const std::string& text, std::size_t lines) {
  std::size_t begin = text.size(), end = text.find_last_not_of(" \n\r\t");
  if (end == text.npos) return {};
  for (begin = end; begin > 0 && lines > 0; --begin)
    if (text[begin] == '\n' && --lines == 0) break;
  const std::string out = text.substr(text[begin] == '\n' ? begin + 1 : begin, end + 1 - begin);
  return out.size() > 4000 ? "…" + out.substr(out.size() - 4000) : out;
}

class Build {
 public:
  Build(const BuildOrder& order, const BuildTools& tools, const fs::path& place)
      : order_(order), tools_(tools), place_(place) {
    fs::remove_all(place_);
    for (const char* folder : {"source", "wheel", "home", "tmp"}) fs::create_directories(place_ / folder);
  }

  BuiltWheel run() {
    unpack();
    read_build_system();
    make_environment();
    if (order_.again) {
      install(order_.requirements);
    } else {
      install(pinned(system_.requires_));
      hook("requires");
      std::vector<std::string> more = requirement_lines(bundle::read_text(place_ / "wheel/requires.txt", 1 << 20));
      if (!more.empty()) {
        more.insert(more.end(), system_.requires_.begin(), system_.requires_.end());
        install(pinned(more));
      }
      fs::remove(place_ / "wheel/requires.txt");
    }
    hook("build");
    return {.file = the_wheel(), .requirements = installed_};
  }

 private:
  [[noreturn]] void refuse(ErrorCode code, std::string what, std::string got) const {
    throw Error(code, {.what = std::move(what),
                       .where = order_.name + (order_.version.empty() ? "" : " " + order_.version),
                       .got = std::move(got)});
  }

  void unpack() const {
    char magic[2] = {};
    std::ifstream(order_.archive, std::ios::binary).read(magic, 2);
    const std::string into = (place_ / "source").string();
    const ProcessResult result =
        magic[0] == 'P' && magic[1] == 'K'
            ? run_process({tools_.python.string(), "-I", "-m", "zipfile", "-e", order_.archive.string(), into})
            : run_process(
                  {"tar", "--no-same-owner", "--no-same-permissions", "-xf", order_.archive.string(), "-C", into});
    if (result.exit_code != 0) refuse(ErrorCode::Format, "the source cannot be unpacked", tail(result.err, 5));
  }

  // The project's folder: the top, or the one folder that an sdist has there.
  fs::path project() const {
    const fs::path top = place_ / "source";
    std::vector<fs::path> candidates = {top};
    if (std::distance(fs::directory_iterator(top), fs::directory_iterator()) == 1)
      candidates.push_back(*fs::directory_iterator(top));
    for (fs::path& folder : candidates) {
      if (!order_.subdirectory.empty()) folder /= order_.subdirectory;
      if (fs::exists(folder / "pyproject.toml") || fs::exists(folder / "setup.py")) return folder;
    }
    refuse(ErrorCode::Format, "there is no Python project in the source", "neither pyproject.toml nor setup.py");
  }

  void read_build_system() {
    system_.requires_ = {"setuptools>=40.8.0"};  // PEP 517's default
    const fs::path file = project() / "pyproject.toml";
    if (!fs::exists(file)) return;
    const TomlValue document = read_toml(file, ErrorCode::Format);
    TomlTable root(document, file, ErrorCode::Format);
    if (!root.has("build-system")) return;
    TomlTable table = root.table("build-system");
    system_.requires_ = table.strings("requires");
    system_.backend = table.string_or("build-backend", system_.backend);
    system_.paths = table.strings("backend-path");
  }

  ProcessResult run_uv(std::vector<std::string> words) const {
    words.insert(words.begin(), tools_.uv.string());
    return packager::run_uv(words);
  }

  void uv(const std::vector<std::string>& words, const char* what) const {
    const ProcessResult result = run_uv(words);
    if (result.exit_code != 0) refuse(ErrorCode::Network, what, tail(result.err, 10));
  }

  void make_environment() const {
    uv({"venv", "--quiet", "--no-project", "--python", tools_.python.string(), (place_ / "environment").string()},
       "an environment for the build cannot be made");
  }

  // The requirements with all their dependencies, each with version and hashes. Wheels only: one lock does not hold
  // what it takes to repeat a build that first builds its own tools.
  std::vector<std::string> pinned(const std::vector<std::string>& wanted) const {
    if (wanted.empty()) return {};
    const auto write = [&](const char* name, const std::vector<std::string>& lines) {
      std::string text;
      for (const std::string& line : lines) text += line + "\n";
      fs::remove(place_ / name);
      bundle::write_text(place_ / name, text);
      return (place_ / name).string();
    };
    std::vector<std::string> words = {"pip", "compile", write("wanted.txt", wanted)};
    if (!tools_.build_constraints.empty())
      words.insert(words.end(), {"--constraints", write("constraints.txt", tools_.build_constraints)});
    words.insert(words.end(), tools_.index_words.begin(), tools_.index_words.end());
    fs::remove(place_ / "pinned.txt");
    words.insert(words.end(), {"--generate-hashes", "--no-annotate", "--no-header", "--quiet", "--no-build", "--python",
                               tools_.python.string(), "-o", (place_ / "pinned.txt").string()});
    uv(words, "what the build requires cannot be resolved to wheels");
    std::vector<std::string> lines = requirement_lines(bundle::read_text(place_ / "pinned.txt", 16 << 20));
    std::erase_if(lines, [](const std::string& line) { return line.starts_with('-'); });  // index options
    return lines;
  }

  void install(const std::vector<std::string>& pins) {
    installed_ = pins;
    if (pins.empty()) return;
    std::string text;
    for (const std::string& line : pins) text += line + "\n";
    fs::remove(place_ / "requirements.txt");
    bundle::write_text(place_ / "requirements.txt", text);
    std::vector<std::string> words = {"pip", "sync", "--quiet", "--require-hashes", "--no-build"};
    words.insert(words.end(), tools_.index_words.begin(), tools_.index_words.end());
    words.insert(words.end(),
                 {"--python", (place_ / "environment/bin/python").string(), (place_ / "requirements.txt").string()});
    // What an earlier build used is probably still in uv's own cache, and there may be no network any more.
    std::vector<std::string> offline = words;
    offline.push_back("--offline");
    if (order_.again && run_uv(offline).exit_code == 0) return;
    uv(words, "what the build requires cannot be installed");
  }

  // Without the user's settings: only what is named here can affect the wheel.
  std::vector<std::string> isolated() const {
    const std::string here = place_.string(), map = "-ffile-prefix-map=" + here + "=.";
    std::vector<std::string> words = without_network();
    words.insert(
        words.end(),
        {"env", "-i", "PATH=" + here + "/environment/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
         "HOME=" + here + "/home", "TMPDIR=" + here + "/tmp", "VIRTUAL_ENV=" + here + "/environment", "LANG=C.UTF-8",
         "TZ=UTC", "PYTHONHASHSEED=0", "PYTHONDONTWRITEBYTECODE=1", "CFLAGS=" + map, "CXXFLAGS=" + map,
         "SOURCE_DATE_EPOCH=315532800"});  // 1980-01-01, the earliest time that zip can hold
    // The tar has no history from which the version could be read; uv read it from the repository.
    if (!order_.scm_version.empty()) words.push_back("SETUPTOOLS_SCM_PRETEND_VERSION=" + order_.scm_version);
    return words;
  }

  // An empty network namespace, where the machine allows one: a build that downloads fails now, instead of giving other
  // bytes next year.
  static std::vector<std::string> without_network() {
    static const bool possible =
        !find_program("unshare").empty() && run_process({"unshare", "--map-root-user", "--net", "true"}).exit_code == 0;
    if (possible) return {"unshare", "--map-root-user", "--net"};
    return {};
  }

  void hook(const std::string& name) const {
    std::vector<std::string> words = isolated();
    words.insert(words.end(), {"sh", "-c", "umask 022; cd \"$1\" && shift && exec \"$@\"", "sh", project().string(),
                               (place_ / "environment/bin/python").string(), "-s", "-c", kHook, name, system_.backend,
                               (place_ / "wheel").string()});
    words.insert(words.end(), system_.paths.begin(), system_.paths.end());
    const ProcessResult result = run_process(words);
    if (result.exit_code != 0)
      refuse(ErrorCode::SelfTest, "the build failed", tail(result.out + "\n" + result.err, 12));
  }

  fs::path the_wheel() const {
    std::vector<fs::path> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(place_ / "wheel"))
      if (entry.path().extension() == ".whl" && entry.symlink_status().type() == fs::file_type::regular)
        found.push_back(entry.path());
    if (found.size() != 1)
      refuse(ErrorCode::SelfTest, "the build did not make one wheel", std::to_string(found.size()) + " files");
    return found.front();
  }

  const BuildOrder& order_;
  const BuildTools& tools_;
  fs::path place_;
  BuildSystem system_;
  std::vector<std::string> installed_;
};

std::string first_line_said_by(const std::vector<std::string>& command) {
  if (find_program(command.front()).empty() && !fs::exists(command.front())) return "no " + command.front();
  const std::string said = run_process(command).out;
  return said.substr(0, said.find('\n'));
}

}  // namespace

std::string describe_tools(const BuildTools& tools) {
  return first_line_said_by({tools.uv.string(), "--version"}) + "; " + first_line_said_by({"cc", "--version"});
}

BuiltWheel build_wheel(const BuildOrder& order, const BuildTools& tools, const fs::path& place) {
  return Build(order, tools, place).run();
}

}  // namespace sealift::packager
