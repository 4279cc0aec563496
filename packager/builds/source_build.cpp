// SPDX-License-Identifier: Apache-2.0
// Unpack -> read [build-system] -> environment -> hooks; see source_build.hpp.
#include "packager/builds/source_build.hpp"

#include <map>
#include <utility>

#include "packager/builds/build_environment.hpp"
#include "packager/builds/build_project.hpp"
#include "packager/builds/build_step.hpp"
#include "packager/builds/cuda_toolkit.hpp"
#include "packager/builds/rust_tools.hpp"
#include "packager/host/process.hpp"
#include "packager/resolve/metadata_headers.hpp"
#include "packager/resolve/requirement_hashes.hpp"
#include "packager/tables/build_variable.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
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
elif hook == "metadata":
    prepare = getattr(target, "prepare_metadata_for_build_wheel", None)
    if prepare is not None:
        name = prepare(answer)
        with open(os.path.join(answer, "prepared.txt"), "w") as file:
            file.write(name)
else:
    target.build_wheel(answer)
)";

std::string step_of(const std::string& hook) {
  if (hook == "build") return "the build";
  return hook == "requires" ? "what its build requires" : "what it requires";
}

class Build {
 public:
  Build(const BuildOrder& order, const BuildTools& tools, const fs::path& place)
      : order_(order), tools_(tools), place_(place), environment_(order_, tools_, place_) {
    fs::remove_all(place_);
    for (const char* folder : {"source", "wheel", "home", "tmp"}) fs::create_directories(place_ / folder);
    if (tools_.isolation == Isolation::Sandbox)
      require_sandbox(
          "install bubblewrap (Debian: apt install bubblewrap), build on a machine that allows namespaces, "
          "require versions that have wheels, or say --unsandboxed-builds, which the lock records");
  }

  BuiltWheel wheel() {
    make_ready();
    hook("build");
    return {.file = the_wheel(), .requirements = environment_.installed()};
  }

  std::optional<std::string> metadata() {
    make_ready();
    hook("metadata");
    if (!fs::exists(fs::symlink_status(place_ / "wheel/prepared.txt"))) return std::nullopt;
    const std::string folder = text_in(place_ / "wheel/prepared.txt", 4096);
    if (folder.empty() || folder.find('/') != folder.npos || folder.starts_with('.') ||
        !fs::is_directory(fs::symlink_status(place_ / "wheel" / folder)))
      refuse_build(order_, ErrorCode::SelfTest, "the build's metadata is in no folder of its own",
                   folder.substr(0, 100));
    return text_in(place_ / "wheel" / folder / "METADATA", kMaxHeaderBytes);
  }

 private:
  void make_ready() {
    unpack_source(order_, tools_, place_);
    system_ = read_build_system(order_, place_);
    if (order_.again) {
      environment_.install(order_.requirements);
    } else {
      install(system_.requires_);
      hook("requires");
      std::vector<std::string> more = requirement_lines(text_in(place_ / "wheel/requires.txt", 1 << 20));
      require_plain(order_, more);
      if (!more.empty()) {
        more.insert(more.end(), system_.requires_.begin(), system_.requires_.end());
        install(std::move(more));
      }
      fs::remove(place_ / "wheel/requires.txt");
    }
  }

  // What foreign code has written: a file of its own, and no link to somebody else's.
  std::string text_in(const fs::path& file, std::uint64_t most) const {
    if (!fs::is_regular_file(fs::symlink_status(file)))
      refuse_build(order_, ErrorCode::SelfTest, "the build did not write what it was asked for",
                   file.filename().string() + " is not a plain file");
    return bundle::read_text(file, most);
  }

  // What the backend wants, and what the job adds.
  void install(std::vector<std::string> wanted) {
    wanted.insert(wanted.end(), order_.extras.requirements.begin(), order_.extras.requirements.end());
    environment_.install(environment_.pinned(wanted));
  }

  std::string path() const {
    std::string path = (environment_.folder() / "bin").string() + ":";
    if (const fs::path toolkit = cuda_toolkit(environment_.site_packages()); !toolkit.empty())
      path += (toolkit / "bin").string() + ":";
    if (rust_) path += rust_->programs.string() + ":";
    return path + kSystemPath;
  }

  std::vector<fs::path> readable() const {
    std::vector<fs::path> folders = with_python(tools_, {environment_.folder()});
    if (rust_) folders.push_back(rust_->programs);
    if (rust_ && !rust_->toolchains.empty()) folders.push_back(rust_->toolchains);
    return folders;
  }

  // Without the user's settings: only what is named here can affect the wheel.
  std::map<std::string, std::string> variables() const {
    const std::string here = place_.string(), map = "-ffile-prefix-map=" + here + "=.";
    std::map<std::string, std::string> variables = {
        {"PATH", path()},
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
    std::error_code error;
    if (!order_.scm_version.empty() && !fs::exists(fs::symlink_status(place_ / "source/.git", error)))
      variables["SETUPTOOLS_SCM_PRETEND_VERSION"] = order_.scm_version;
    if (const fs::path toolkit = cuda_toolkit(environment_.site_packages()); !toolkit.empty())
      variables["CUDA_HOME"] = toolkit.string();
    if (rust_ && !rust_->toolchains.empty()) variables["RUSTUP_HOME"] = rust_->toolchains.string();
    for (const auto& [name, value] : order_.extras.variables) add_variable(variables, name, value);
    return variables;
  }

  void add_variable(std::map<std::string, std::string>& variables, const std::string& name, std::string value) const {
    const std::string packages = environment_.site_packages().string();
    for (std::size_t at = value.find(kBuildWord); at != value.npos; at = value.find(kBuildWord, at + packages.size()))
      value.replace(at, kBuildWord.size(), packages);
    const bool flags = name == "CFLAGS" || name == "CXXFLAGS";  // ours keep the build's folder out of its output
    variables[name] = flags ? value + " " + variables[name] : value;
  }

  void hook(const std::string& name) const {
    std::vector<std::string> words = {"sh",
                                      "-c",
                                      "umask 022; exec \"$@\"",
                                      "sh",
                                      (environment_.folder() / "bin/python").string(),
                                      "-s",
                                      "-c",
                                      kHook,
                                      name,
                                      system_.backend,
                                      (place_ / "wheel").string()};
    words.insert(words.end(), system_.paths.begin(), system_.paths.end());
    const ProcessResult result =
        run_step(tools_, {.command = words,
                          .environment = variables(),
                          .readable = readable(),
                          .writable = {place_ / "source", place_ / "wheel", place_ / "home", place_ / "tmp"},
                          .folder = project_of(order_, place_),
                          .watch = watch_of(order_, tools_, step_of(name))});
    if (result.exit_code != 0)
      refuse_build(order_, ErrorCode::SelfTest, "the build failed", end_of_log(result.out + "\n" + result.err));
  }

  fs::path the_wheel() const {
    std::vector<fs::path> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(place_ / "wheel"))
      if (entry.path().extension() == ".whl" && entry.symlink_status().type() == fs::file_type::regular)
        found.push_back(entry.path());
    if (found.size() != 1)
      refuse_build(order_, ErrorCode::SelfTest, "the build did not make one wheel",
                   std::to_string(found.size()) + " files");
    return found.front();
  }

  const BuildOrder& order_;
  const BuildTools& tools_;
  fs::path place_;
  BuildEnvironment environment_;
  BuildSystem system_;
  std::optional<RustTools> rust_ = find_rust();
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
  return Build(order, tools, place).wheel();
}

std::optional<std::string> prepare_metadata(const BuildOrder& order, const BuildTools& tools, const fs::path& place) {
  return Build(order, tools, place).metadata();
}

}  // namespace sealift::packager
