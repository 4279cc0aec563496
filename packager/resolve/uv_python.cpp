// SPDX-License-Identifier: Apache-2.0
// A shell script of four lines; see uv_python.hpp. uv asks by `-I -B -c`, and calls hooks of builds without `-I`. It
// starts what sys.executable names, so that is the script, too.
#include "packager/resolve/uv_python.hpp"

#include <utility>

#include "packager/host/uv.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/output_file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

constexpr const char* kProject =
    "[project]\nname = \"canary\"\ndynamic = [\"version\", \"dependencies\"]\n[build-system]\nrequires = []\n"
    "build-backend = \"canary\"\nbackend-path = [\".\"]\n";
constexpr const char* kBackend =
    "import os\nopen(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'sang'), 'w').close()\n";

}  // namespace

UvPython::UvPython(const fs::path& python, std::string version, const fs::path& folder)
    : path_(fs::absolute(folder) / "python"), version_(std::move(version)) {
  fs::create_directories(folder);
  bundle::write_text(path_, "#!/bin/sh\nif [ \"$#\" = 4 ] && [ \"$1 $2 $3\" = '-I -B -c' ]; then\n  exec " +
                                shell_quoted(python.string()) +
                                " -I -B -c 'import sys; sys.executable = sys.argv.pop(1); exec(sys.argv.pop(1))' " +
                                shell_quoted(path_.string()) + " \"$4\"\nfi\necho '" + std::string(kRunsNothing) +
                                "' >&2\nexit 1\n");
  fs::permissions(path_, fs::perms(0755));
}

void UvPython::require_silence(const fs::path& uv, const fs::path& scratch) const {
  const fs::path folder = scratch / "canary";
  fs::create_directories(folder);
  bundle::write_text(folder / "pyproject.toml", kProject);
  bundle::write_text(folder / "canary.py", kBackend);
  bundle::write_text(folder / "requirements.in", "canary @ " + ("file://" + fs::absolute(folder).string()) + "\n");
  const ProcessResult result = run_uv({uv.string(), "pip", "compile", (folder / "requirements.in").string(), "--python",
                                       path_.string(), "--no-build-isolation", "--offline", "--no-cache", "--quiet"});
  const bool silent = result.exit_code != 0 && result.err.find(kRunsNothing) != std::string::npos;
  if (silent && !fs::exists(folder / "sang")) return;
  if (result.err.find("is missing `distutils`") != std::string::npos)
    throw bundle::Error(bundle::ErrorCode::Missing,
                        {.what = "this Python lacks a module that uv asks of it",
                         .where = path_.string(),
                         .got = "no distutils",
                         .next = "install it beside that Python (Debian, Ubuntu: apt install python3-distutils)"});
  throw bundle::Error(bundle::ErrorCode::CannotCheck,
                      {.what = "uv cannot be kept from running the code of packages while it resolves",
                       .where = uv.string(),
                       .expected = "that it runs only the Python that it is given",
                       .got = silent ? "it ran a project's code" : result.err.substr(0, 2000),
                       .next = "use a uv of the version that these tools were tested with (cmake/prerequisites.sh), or "
                               "say [python] build = false"});
}

}  // namespace sealift::packager
