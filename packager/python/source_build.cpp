// SPDX-License-Identifier: Apache-2.0
// Unpack -> read [build-system] -> environment -> hooks; see source_build.hpp.
#include "packager/python/source_build.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>

#include "packager/host/uv.hpp"
#include "packager/job/toml_file.hpp"
#include "packager/python/requirement_hashes.hpp"
#include "packager/python/uv_refusal.hpp"
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

constexpr const char* kSystemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

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
    if (tools_.isolation == Isolation::Sandbox)
      require_sandbox(
          "install bubblewrap (Debian: apt install bubblewrap), build on a machine that allows namespaces, "
          "require versions that have wheels, or say --unsandboxed-builds, which the lock records");
  }

  BuiltWheel run() {
    unpack();
    read_build_system();
    if (order_.again) {
      install(order_.requirements);
    } else {
      install(pinned(with_extras(system_.requires_)));
      hook("requires");
      std::vector<std::string> more = requirement_lines(bundle::read_text(place_ / "wheel/requires.txt", 1 << 20));
      require_plain(more);
      if (!more.empty()) {
        more.insert(more.end(), system_.requires_.begin(), system_.requires_.end());
        install(pinned(with_extras(std::move(more))));
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

  // By the sandbox too: the archive is as foreign as what is in it.
  void unpack() const {
    char magic[2] = {};
    std::ifstream(order_.archive, std::ios::binary).read(magic, 2);
    const std::string into = (place_ / "source").string();
    const bool zip = magic[0] == 'P' && magic[1] == 'K';
    const ProcessResult result =
        isolated({.command = zip ? std::vector<std::string>{tools_.python.string(), "-I", "-m", "zipfile", "-e",
                                                            order_.archive.string(), into}
                                 : std::vector<std::string>{"tar", "--no-same-owner", "--no-same-permissions", "-xf",
                                                            order_.archive.string(), "-C", into},
                  .environment = {{"PATH", kSystemPath}, {"LANG", "C.UTF-8"}},
                  .readable = with_python({order_.archive}),
                  .writable = {into}});
    if (result.exit_code != 0) refuse(ErrorCode::Format, "the source cannot be unpacked", tail(result.err, 5));
    if (!order_.history.empty()) copy_history();
  }

  // What tells a version, and neither an address nor a password.
  void copy_history() const {
    const fs::path into = place_ / "source/.git";
    fs::create_directory(into);
    for (const char* name : {"HEAD", "refs", "packed-refs", "objects", "index", "shallow"})
      if (fs::exists(order_.history / name))
        fs::copy(order_.history / name, into / name, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    bundle::write_text(into / "config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n");
  }

  // The project's folder: the top, or the one folder that an sdist has there.
  fs::path project() const {
    const fs::path top = place_ / "source";
    std::vector<fs::path> candidates = {top};
    if (std::distance(fs::directory_iterator(top), fs::directory_iterator()) == 1)
      candidates.push_back(*fs::directory_iterator(top));
    for (fs::path& folder : candidates) {
      if (!order_.subdirectory.empty()) folder /= order_.subdirectory;
      if (fs::exists(folder / "pyproject.toml") || fs::exists(folder / "setup.py")) return inside(folder);
    }
    refuse(ErrorCode::Format, "there is no Python project in the source", "neither pyproject.toml nor setup.py");
  }

  // A link in the source may lead anywhere, and from here on it is this program that follows it.
  fs::path inside(const fs::path& folder) const {
    const fs::path top = fs::canonical(place_ / "source"), real = fs::canonical(folder);
    const fs::path relative = real.lexically_relative(top);
    if (relative.empty() || *relative.begin() == "..")
      refuse(ErrorCode::Format, "the project's folder is a link out of its source", real.string());
    return folder;
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
    require_plain(system_.requires_);
    system_.backend = table.string_or("build-backend", system_.backend);
    system_.paths = table.strings("backend-path");
  }

  ProcessResult run_uv(std::vector<std::string> words) const {
    words.insert(words.begin(), tools_.uv.string());
    return packager::run_uv(words);
  }

  void uv(const std::vector<std::string>& words, const char* what) const {
    const ProcessResult result = run_uv(words);
    if (result.exit_code != 0) refuse(refusal_of(result.err).code, what, tail(result.err, 10));
  }

  // Anew for each set of packages: uv asks the interpreter of an environment about itself, and in one that holds
  // packages their startup files would answer, outside of the sandbox.
  void make_environment() const {
    fs::remove_all(place_ / "environment");
    uv({"venv", "--quiet", "--no-project", "--python", tools_.python.string(), (place_ / "environment").string()},
       "an environment for the build cannot be made");
  }

  // A line of a foreign project becomes a line of uv's input: no option, no second line, nothing of this machine's
  // disk.
  void require_plain(const std::vector<std::string>& requirements) const {
    for (const std::string& one : requirements) {
      const bool named = !one.empty() && std::isalnum(static_cast<unsigned char>(one.front())) != 0 &&
                         one.find_first_of("\n\r") == one.npos;
      const std::size_t at = std::min(one.find('@'), one.size());
      const std::size_t address = std::min(one.find_first_not_of(" \t", at + 1), one.size());
      const std::string_view name = std::string_view(one).substr(0, at);
      const bool path = name.find_first_of("/\\") != name.npos || name.ends_with(".whl") || name.ends_with(".gz") ||
                        name.ends_with(".zip");  // uv takes these for files, relative to where it runs
      const bool here = at < one.size() && one.compare(address, 8, "https://") != 0;
      if (named && !path && !here) continue;
      refuse(ErrorCode::Format, "what the build requires is not the requirement of a package", one);
    }
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

  std::vector<std::string> with_extras(std::vector<std::string> wanted) const {
    wanted.insert(wanted.end(), order_.extras.requirements.begin(), order_.extras.requirements.end());
    return wanted;
  }

  void install(const std::vector<std::string>& pins) {
    installed_ = pins;
    make_environment();
    if (pins.empty()) return;
    std::string text;
    for (const std::string& line : pins) text += line + "\n";
    fs::remove(place_ / "requirements.txt");
    bundle::write_text(place_ / "requirements.txt", text);
    std::vector<std::string> words = {"pip",        "sync",        "--quiet", "--require-hashes",
                                      "--no-build", "--link-mode", "copy"};  // a link would be uv's own cached file
    words.insert(words.end(), tools_.index_words.begin(), tools_.index_words.end());
    words.insert(words.end(),
                 {"--python", (place_ / "environment/bin/python").string(), (place_ / "requirements.txt").string()});
    // What an earlier build used is probably still in uv's own cache, and there may be no network any more.
    std::vector<std::string> offline = words;
    offline.push_back("--offline");
    if (order_.again && run_uv(offline).exit_code == 0) return;
    if (order_.again) make_environment();
    uv(words, "what the build requires cannot be installed");
  }

  // In the sandbox, or, where the packer said so, with the same variables and nothing else to hold it.
  ProcessResult isolated(const SandboxedRun& run) const {
    if (tools_.isolation == Isolation::Sandbox) return run_sandboxed(run);
    std::vector<std::string> words = {"sh", "-c", "cd \"$1\" && shift && exec \"$@\"", "sh", run.folder.string()};
    words.insert(words.end(), run.command.begin(), run.command.end());
    return run_in(words, run.environment);
  }

  // The target's Python, where it is not the system's.
  std::vector<fs::path> with_python(std::vector<fs::path> readable) const {
    const fs::path prefix = tools_.python.parent_path().parent_path();
    if (prefix == "/usr" || prefix == "/") return readable;
    readable.push_back(tools_.python);
    for (const char* folder : {"lib", "lib64", "include"})
      if (fs::is_directory(prefix / folder)) readable.push_back(prefix / folder);
    return readable;
  }

  // Without the user's settings: only what is named here can affect the wheel.
  std::map<std::string, std::string> variables() const {
    const std::string here = place_.string(), map = "-ffile-prefix-map=" + here + "=.";
    std::map<std::string, std::string> variables = {
        {"PATH", here + "/environment/bin:" + kSystemPath},
        {"HOME", here + "/home"},
        {"TMPDIR", here + "/tmp"},
        {"VIRTUAL_ENV", here + "/environment"},
        {"LANG", "C.UTF-8"},
        {"TZ", "UTC"},
        {"PYTHONHASHSEED", "0"},
        {"PYTHONDONTWRITEBYTECODE", "1"},
        {"CFLAGS", map},
        {"CXXFLAGS", map},
        {"SOURCE_DATE_EPOCH", "315532800"}};  // 1980-01-01, the earliest time that zip can hold
    // The tar has no history from which the version could be read; a build with the history told it.
    if (!order_.scm_version.empty()) variables["SETUPTOOLS_SCM_PRETEND_VERSION"] = order_.scm_version;
    if (const fs::path toolkit = cuda_toolkit(); !toolkit.empty()) {
      variables["CUDA_HOME"] = toolkit.string();
      variables["PATH"] = here + "/environment/bin:" + toolkit.string() + "/bin:" + kSystemPath;
    }
    for (const auto& [name, value] : order_.extras.variables) add_variable(variables, name, value);
    return variables;
  }

  void add_variable(std::map<std::string, std::string>& variables, const std::string& name, std::string value) const {
    const std::string packages = site_packages().string();
    for (std::size_t at = value.find(kBuildWord); at != value.npos; at = value.find(kBuildWord, at + packages.size()))
      value.replace(at, kBuildWord.size(), packages);
    const bool flags = name == "CFLAGS" || name == "CXXFLAGS";  // ours keep the build's folder out of its output
    variables[name] = flags ? value + " " + variables[name] : value;
  }

  fs::path site_packages() const {
    return place_ / "environment/lib" / ("python" + tools_.python_version.substr(0, tools_.python_version.rfind('.'))) /
           "site-packages";
  }

  // Of NVIDIA's compiler as wheels (cuda-toolkit[nvcc]): nvidia/cu13; empty when the environment has none.
  fs::path cuda_toolkit() const {
    const fs::path nvidia = site_packages() / "nvidia";
    if (!fs::is_directory(nvidia)) return {};
    for (const fs::directory_entry& entry : fs::directory_iterator(nvidia))
      if (fs::exists(entry.path() / "bin/nvcc")) return entry.path();
    return {};
  }

  void hook(const std::string& name) const {
    std::vector<std::string> words = {"sh",
                                      "-c",
                                      "umask 022; exec \"$@\"",
                                      "sh",
                                      (place_ / "environment/bin/python").string(),
                                      "-s",
                                      "-c",
                                      kHook,
                                      name,
                                      system_.backend,
                                      (place_ / "wheel").string()};
    words.insert(words.end(), system_.paths.begin(), system_.paths.end());
    const ProcessResult result =
        isolated({.command = words,
                  .environment = variables(),
                  .readable = with_python({place_ / "environment"}),
                  .writable = {place_ / "source", place_ / "wheel", place_ / "home", place_ / "tmp"},
                  .folder = project()});
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
