// SPDX-License-Identifier: Apache-2.0
#include "packager/builds/build_remedy.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "packager/builds/rust_tools.hpp"

namespace sealift::packager {

namespace {

bool says(const std::string& log, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return log.find(word) != log.npos; });
}

// Up to `end`; up to the end of the log where that is a line's.
std::string between(const std::string& log, std::string_view begin, char end) {
  const std::size_t at = log.rfind(begin);
  if (at == log.npos) return {};
  const std::size_t from = at + begin.size(), to = log.find(end, from);
  return to == log.npos && end != '\n' ? std::string() : log.substr(from, to - from);
}

bool is_word(const std::string& text) {
  return !text.empty() && text.size() <= 100 && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/' || c == '+';
  });
}

// Lines for the job file.
std::string extra(const std::string& package, const std::string& requirements) {
  return "give its build what it misses, in the job file:\n            [python.extra_build_dependencies]\n           "
         " " +
         package + " = [" + requirements + "]";
}

}  // namespace

std::string build_remedy(const std::string& package, const std::string& log) {
  if (std::string module = between(log, "No module named '", '\''); is_word(module)) {
    module = module.substr(0, module.find('.'));
    if (module == "pkg_resources")
      return "its build is for an older setuptools, in the job file:\n            [python]\n            "
             "build_constraints = "
             "[\"setuptools<81\"]";
    return extra(package, "\"" + module + "\"") +
           "\n            with the version that the bundle carries, where that matters (torch)";
  }
  if (const std::string mends = between(log, ": require nvidia-nvvm==", '\n'); !mends.empty())
    return extra(package, "\"cuda-toolkit[…]==…\", \"nvidia-nvvm==" + mends + "\"") +
           "\n            beside what is there: nvcc's compiler and its assembler have to be of one release";
  if (says(log, {"setuptools-scm was unable to detect version", "LookupError: setuptools-scm",
                 "unable to detect version for", "Unable to determine version", "not a git repository"})) {
    std::string name = package;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::isalnum(c) != 0 ? static_cast<char>(std::toupper(c)) : '_'; });
    return "its version comes from git: name a checkout or a repository in place of files without history, or say the "
           "version in the job file:\n            [python.extra_build_variables." +
           package + "]\n            SETUPTOOLS_SCM_PRETEND_VERSION_FOR_" + name + " = \"1.0\"";
  }
  if (says(log, {"Unsupported .version"}))
    return extra(package, "\"nvidia-nvvm==13.0.*\"") +
           "\n            beside what is there, with the release of its nvidia-cuda-nvcc: that assembler is older than "
           "the "
           "compiler";
  if (says(log, {"CUDA_HOME", "nvcc: not found", "nvcc was not found", "'nvcc'", "bin/nvcc"}))
    return extra(package, "\"torch==…\", \"cuda-toolkit[nvcc,cudart,cccl,crt]==13.0.*\", \"nvidia-nvvm==13.0.*\"") +
           "\n            with the CUDA of the torch that the bundle carries; CUDA_HOME is then that toolkit";
  if (says(log, {"crates.io index", "index.crates.io", "as a dependency of package `"}))
    return "its build wants to download crates, and builds have no network: require a version that has a wheel; or "
           "run, in a folder with its source, mkdir -p .cargo && cargo vendor >> .cargo/config.toml, and name that "
           "folder in requirements, \"" +
           package + " @ ./FOLDER\"";
  if (says(log, {"name resolution", "Name or service not known", "Network is unreachable", "urlopen error"}))
    return "its build wants to download something, and builds have no network: require a version that has a wheel";
  if (says(log, {"Python.h: No such file"}))
    return "install the headers of this Python (Debian: apt install python3-dev), or take an interpreter that has them";
  if (const std::string header = between(log, "fatal error: ", ':'); is_word(header))
    return "install what brings the header " + header + " (Debian: apt-file search " + header + ")";
  if (says(log, {"gcc: not found", "cc: not found", "g++: not found", "gcc' failed: No such file",
                 "g++' failed: No such file", "No such file or directory: 'gcc'", "No such file or directory: 'cc'",
                 "No such file or directory: 'g++'", "No CMAKE_CXX_COMPILER", "No CMAKE_C_COMPILER"}))
    return "install a compiler (Debian: apt install build-essential)";
  if (says(log, {"No such file or directory: 'cmake'", "cmake: not found", "No such file or directory: 'ninja'"}))
    return extra(package, "\"cmake\", \"ninja\"");
  if (says(log,
           {"cargo: not found", "No such file or directory: 'cargo'", "rustc: not found", "can't find Rust compiler"}))
    return "install Rust, by rustup or for the whole system (Debian: apt install cargo): a build looks for cargo in " +
           rust_programs().string() + ", /usr/local/bin and /usr/bin; or require a version that has a wheel";
  return {};
}

}  // namespace sealift::packager
