// SPDX-License-Identifier: Apache-2.0
// What an interpreter executes of a generation when it starts, told by Python itself: an audit hook notes every file
// that it opens below site-packages and every code object that it runs, while `site` does what it does at each start.
#include "bundle/wheel/wheel_startup.hpp"
#include "tests/installer/host_python.hpp"

using namespace sealift;
using namespace sealift::test;

namespace {

// SITE: prints "open NAME" and "run NAME", with paths below SITE; a line of a .pth file is "<string>".
constexpr const char* kStart = R"python(
import os, sys
folder = sys.argv[1]
seen = set()
def note(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(folder) and os.path.exists(arguments[0]):
        seen.add("open " + arguments[0][len(folder) + 1:])
    if event == "exec":
        name = arguments[0].co_filename
        if name.startswith(folder):
            seen.add("run " + name[len(folder) + 1:])
        elif name == "<string>":
            seen.add("run a line")
import site
sys.addaudithook(note)
site.addsitedir(folder)
for name in ("sitecustomize", "usercustomize"):
    try:
        __import__(name)
    except ImportError as error:
        if error.name != name:
            raise
for line in sorted(seen):
    print(line)
)python";

}  // namespace

TEST_CASE("after apply an interpreter that starts opens and runs the listed files of site-packages and no others") {
  if (!host_python_is_there()) return;
  const Site site;
  const std::string allowed = "import sys; sys.sealift_was_here = True\n";
  TinyBundle tiny;
  tiny.startup_files = {bundle::sha256(bundle::as_bytes(allowed))};
  tiny.items = {
      wheel_item({.name = "setuptools",
                  .files = {{"distutils-precedence.pth", bundle::detail::distutils_line("local") + "\n"},
                            {"_distutils_hack/__init__.py", "def add_shim():\n    pass\n"},
                            {"setuptools/__init__.py", "raise SystemExit('imported')\n"}}}),
      wheel_item({.name = "spaced",
                  .files = {{"spaced-nspkg.pth", bundle::detail::namespace_line("sealift_space", true) + "\n"},
                            {"sealift_space/part.py", "raise SystemExit('imported')\n"}}}),
      wheel_item({.name = "folder",
                  .files = {{"folder.pth", "# more modules\nfolder_path\n"},
                            {"folder_path/found.py", "raise SystemExit('imported')\n"}}}),
      wheel_item({.name = "allowed", .files = {{"allowed.pth", allowed}, {"allowed/__init__.py", "x = 1\n"}}}),
      wheel_item({}),
  };
  site.apply(site.make(tiny));
  write_file(site.dir / "start.py", kStart);
  const std::string folder = fs::canonical(site.site_packages()).string();
  const std::string command = std::string(kHostPython) + " -I -S -B " + (site.dir / "start.py").string() + " " + folder;
  const Ran ran = run_in_shell(command);
  CHECK(ran.output ==
        "open _distutils_hack/__init__.py\n"
        "open allowed.pth\n"
        "open distutils-precedence.pth\n"
        "open folder.pth\n"
        "open spaced-nspkg.pth\n"
        "run _distutils_hack/__init__.py\n"
        "run a line\n");
  CHECK(ran.status == 0);
  const Ran timed = run_in_shell(
      std::string(kHostPython) + " -I -S -B -X importtime -c \"import site; site.addsitedir('" + folder +
      "')\" 2>&1 | grep -o -e _distutils_hack -e setuptools -e found -e part -e allowed -e demo | sort -u");
  CHECK(timed.output == "_distutils_hack\n");  // the one module of the environment that -X importtime names
}
