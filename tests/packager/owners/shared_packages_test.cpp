// SPDX-License-Identifier: Apache-2.0
// One package in several wheels: which files need a [[shared]] rule, and which packages are nobody's.
#include "packager/owners/shared_packages.hpp"

#include <doctest/doctest.h>

#include "packager/owners/path_extension.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::packager;

namespace {

constexpr const char* kOwnerWheel = "host-1.0-py3-none-any.whl";
constexpr const char* kGuestWheel = "plug_cu12-2.0-py3-none-any.whl";

// What two wheels of one package bring, and what they may.
struct Pair {
  std::vector<SharedRule> rules = {};
  std::set<std::string> host_needs = {}, plug_needs = {};
  std::vector<std::string> host_files = {"host/__init__.py", "host/core.py"}, plug_files = {"host/plugins/extra.py"};
  bool is_namespace = false;

  Shares settle() const {
    sealift::bundle::PackageOwners packages;
    SharedPackages shared(rules);
    shared.note_needs(kOwnerWheel, host_needs);
    shared.note_needs(kGuestWheel, plug_needs);
    shared.note_needs("between-1-py3-none-any.whl", {"host"});
    if (is_namespace) shared.note_namespace("host");
    for (const auto& [wheel, files] : {std::pair(kOwnerWheel, host_files), std::pair(kGuestWheel, plug_files)})
      for (const std::string& file : files) {
        packages.claim(file, wheel, false);
        shared.note_file(file, wheel);
      }
    Shares shares = shared.settle(packages);
    packages.check();
    return shares;
  }
};

const Shares kPlugins = {{kGuestWheel, {"host/plugins"}}};

}  // namespace

TEST_CASE("files in another one's package need a rule, and the refusal prints it") {
  const sealift::bundle::Error error = sealift::test::refusal([] { Pair{}.settle(); });
  INFO(error.what());
  CHECK(error.code() == sealift::bundle::ErrorCode::Conflict);
  CHECK(sealift::test::mentions(
      error, "[[shared]]\n            package = \"plug-cu12\"\n            into = \"host/plugins\""));
  CHECK(Pair{.rules = {{.package = "plug-cu12", .into = "host/plugins"}}}.settle() == kPlugins);
  CHECK(Pair{.rules = {{.package = "plug-cu12", .into = "host"}}}.settle() == Shares{{kGuestWheel, {"host"}}});
  CHECK_REFUSED((Pair{.rules = {{.package = "plug-cu12", .into = "host/plugins"}},
                      .plug_files = {"host/plugins/extra.py", "host/plugins2.py"}}
                     .settle()),
                Conflict, "host/plugins2.py");
}

TEST_CASE("a rule that allows nothing is refused") {
  for (const SharedRule& rule :
       {SharedRule{.package = "plug-cu12", .into = "host/other"}, SharedRule{.package = "host", .into = "host/plugins"},
        SharedRule{.package = "plug-cu12", .into = "host/plugins/extra.py"}})
    CHECK_REFUSED((Pair{.rules = {{.package = "plug-cu12", .into = "host/plugins"}, rule}}.settle()), Usage,
                  "it has no file there");
}

TEST_CASE("a package that requires the other, or that the other requires, may put files of new names into it") {
  CHECK(Pair{.plug_needs = {"host"}}.settle() == kPlugins);
  CHECK(Pair{.plug_needs = {"between"}}.settle() == kPlugins);  // airflow's providers require its meta-package
  CHECK(Pair{.host_needs = {"plug-cu12"}}.settle() == kPlugins);
  CHECK(Pair{.plug_needs = {"host"}, .plug_files = {"host/libhost.so.1", "host/data/a.txt"}}.settle() ==
        Shares{{kGuestWheel, {"host"}}});
  CHECK_REFUSED(Pair{.plug_needs = {"hosts"}}.settle(), Conflict, "host/plugins/extra.py");
}

TEST_CASE("a library goes into a folder that ld.so searches for another one's by a rule alone") {
  const std::vector<std::string> files = {"host/__init__.py", "host/native/libhost.so"};
  for (const char* library : {"host/lib/libevil.so", "host/x.libs/libz.so.1", "host/native/libz.so.1"}) {
    const Pair pair{.plug_needs = {"host"}, .host_files = files, .plug_files = {library}};
    CHECK_REFUSED(pair.settle(), Conflict, "into the package of another one");
  }
  Pair pair{.plug_needs = {"host"}, .host_files = files, .plug_files = {"host/native/libz.so.1"}};
  pair.rules = {{.package = "plug-cu12", .into = "host/native"}};
  CHECK(pair.settle() == Shares{{kGuestWheel, {"host/native"}}});
  pair.rules.clear();
  pair.plug_files = {"host/native/_more.cpython-311-x86_64-linux-gnu.so"};  // asked for by its package alone
  CHECK(pair.settle() == Shares{{kGuestWheel, {"host/native"}}});
}

TEST_CASE("no module is put beside one of the same name, at any depth and whatever is allowed") {
  const std::vector<std::string> files = {"host/__init__.py", "host/a/b/c/deep.py", "host/core.py"};
  for (const char* twin : {"host/a/b/c/deep/__init__.py", "host/core/__init__.py", "host/core.abi3.so"}) {
    const Pair pair{.rules = {{.package = "plug-cu12", .into = "host"}},
                    .plug_needs = {"host"},
                    .host_files = files,
                    .plug_files = {twin}};
    CHECK_REFUSED(pair.settle(), Conflict, "the same name");
  }
}

TEST_CASE("a package whose __init__.py only extends its path is a namespace") {
  CHECK(Pair{.host_files = {"host/__init__.py", "host/cloud/__init__.py"}, .is_namespace = true}.settle() == kPlugins);
  CHECK_REFUSED(
      (Pair{.host_files = {"host/__init__.py", "host/plugins/extra/__init__.py"}, .is_namespace = true}.settle()),
      Conflict, "the same name");
}

TEST_CASE("a folder of the module path is shared with nobody") {
  const std::vector<SharedRule> rules = {{.package = "plug-cu12", .into = "host"}};
  sealift::bundle::PackageOwners packages;
  packages.claim("host/core.py", kOwnerWheel);
  packages.claim("host/sitecustomize.py", kGuestWheel);
  packages.claim({.folders = {"host"}, .namespaces = {}}, kOwnerWheel);
  SharedPackages shared(rules);
  CHECK_REFUSED(shared.settle(packages), Usage, "it has no file there");
  packages.share(kGuestWheel, "host");
  CHECK_REFUSED(packages.check(), Conflict, "host/sitecustomize.py");
}

TEST_CASE("the ways in which a file may only extend its package's path are known, and nothing else passes") {
  for (const char* good :
       {"__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n",
        "__path__ = __import__(\"pkgutil\").extend_path(__path__, __name__)  # type: ignore",
        "from pkgutil import extend_path\n__path__ = extend_path(__path__, __name__)\n",
        "import pkgutil\r\n\r\n__path__ = pkgutil.extend_path(__path__, __name__);\r\n",
        "__import__('pkg_resources').declare_namespace(__name__)\n",
        "# -*- coding: utf-8 -*-\n# A licence\n\"\"\"A text.\nimport os\n\"\"\"\ntry:\n    import pkg_resources\n"
        "    pkg_resources.declare_namespace(__name__)\nexcept ImportError:\n    import pkgutil\n"
        "    __path__ = pkgutil.extend_path(__path__, __name__)\n"})
    CHECK_MESSAGE(only_extends_path(good), good);
  const std::string extends = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)";
  for (const std::string& bad :
       {std::string(), std::string("# nothing\n"), std::string("import pkgutil\n"), extends + "\nimport evil\n",
        extends + "; import evil", "\"\"\"text\"\"\"; import evil\n" + extends, "# x\rimport evil\n" + extends,
        "# coding: utf-7\n# +AAo-import evil\n" + extends, "\"\"\"\\\"\"\"\nimport evil\n\"\"\"\n" + extends,
        "__version__ = '1.0'\n" + extends, extends + "\n" + std::string(9000, '#')})
    CHECK_MESSAGE(!only_extends_path(bad), bad);
}
