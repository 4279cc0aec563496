// SPDX-License-Identifier: Apache-2.0
// The real poetry and pdm: a project's needs are resolved, locked with digests and installed from the index alone.
#include <doctest/doctest.h>

#include "tests/offline_repo/live.hpp"
#include "tests/offline_repo/server_process.hpp"
#include "tests/support/clients.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

// A server over two wheels, of which one needs the other, and a folder with a project that needs the first.
struct ProjectDesk {
  ProjectDesk(const std::string& name, const std::string& source) {
    write_file(dir / "project/pyproject.toml",
               "[project]\nname = \"site\"\nversion = \"0\"\nrequires-python = \">=3.9,<4\"\n"
               "dependencies = [\"demo\"]\n\n[tool." +
                   name + "]\n" + source);
    const Ran venv = run({client("python"), "-m", "venv", "--without-pip", dir / "project/.venv"});
    INFO(venv.errors);
    REQUIRE(venv.status == 0);
  }

  TempDir dir;
  MadeBundle made = make_bundle(
      dir / "bundle", {.items = {wheel_item({.files = {{"demo/__init__.py", "import base\nANSWER = base.VALUE + 1\n"}},
                                             .extra_metadata = "Requires-Python: >=3.6\nRequires-Dist: base_lib\n"}),
                                 wheel_item({.name = "base_lib", .files = {{"base/__init__.py", "VALUE = 41\n"}}})}});
  ServerProcess server{serve({made.folder, "--fingerprint", made.fingerprint()}), dir / "log"};
  std::string index = "http://127.0.0.1:" + std::to_string(port_of(server.line())) + "/c/test/simple/";

  // The program in the project's folder, with a home of its own, installs both, and locks their digests.
  void installs(const std::string& environment, const std::string& command, const std::string& lock) {
    const std::string folder = (dir / "project").string();
    const Ran ran = run({"sh", "-c",
                         "cd " + folder + " && exec env -u VIRTUAL_ENV HOME=" + (dir / "home").string() + " " +
                             environment + " " + command});
    INFO(ran.output << ran.errors << read_file(dir / "log"));
    CHECK(ran.status == 0);
    CHECK(run({folder + "/.venv/bin/python", "-c", "import demo; print(demo.ANSWER)"}).output == "42\n");
    const std::string locked = read_file(dir / "project" / lock);
    for (const Entry& entry : made.manifest.entries) CHECK(locked.find(entry.sha256.hex()) != std::string::npos);
  }
};

}  // namespace

TEST_CASE("poetry locks and installs a project from the index") {
  const std::string poetry = client("poetry");
  if (poetry.empty()) return;
  ProjectDesk desk("poetry", "package-mode = false\n");
  const std::string project = read_file(desk.dir / "project/pyproject.toml");
  write_file(desk.dir / "project/pyproject.toml", project + "\n[[tool.poetry.source]]\nname = \"site\"\nurl = \"" +
                                                      desk.index + "\"\npriority = \"primary\"\n");
  desk.installs("POETRY_VIRTUALENVS_IN_PROJECT=true POETRY_KEYRING_ENABLED=false", poetry + " install -n --no-root",
                "poetry.lock");
}

TEST_CASE("pdm locks and installs a project from the index") {
  const std::string pdm = client("pdm");
  if (pdm.empty()) return;
  ProjectDesk desk("pdm", "distribution = false\n");
  const std::string project = read_file(desk.dir / "project/pyproject.toml");
  write_file(desk.dir / "project/pyproject.toml",
             project + "\n[[tool.pdm.source]]\nname = \"pypi\"\nurl = \"" + desk.index + "\"\nverify_ssl = false\n");
  desk.installs("PDM_CHECK_UPDATE=0 PDM_IGNORE_SAVED_PYTHON=1", pdm + " install --no-self", "pdm.lock");
}
