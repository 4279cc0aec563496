// SPDX-License-Identifier: Apache-2.0
// A stored file of each scheme lies where the packager said that it would.
#include "sealift/bundle/wheel/installed_path.hpp"

#include <doctest/doctest.h>

#include "installer/layout/layout.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using bundle::Scheme;

TEST_CASE("packager and installer put the files of every scheme to the same paths") {
  bundle::Environment environment;
  environment.site_packages = bundle::SafePath::parse(bundle::site_packages_of("3.11"), "test");
  const std::string info = "my_demo-1.0.dist-info";
  for (const auto& [scheme, folder] :
       {std::pair(Scheme::SitePackages, installer::kSitePackagesFolder),
        std::pair(Scheme::Scripts, installer::kScriptsFolder), std::pair(Scheme::Headers, installer::kHeadersFolder),
        std::pair(Scheme::Data, installer::kDataFolder)})
    for (const std::string path : {"demo", "demo/a.h", "share/demo/a b.txt"})
      CHECK(installer::place_of_wheel_file(environment, info, std::string(folder) + "/" + path) ==
            bundle::installed_path(scheme, path, info, environment.site_packages.text()));
}

TEST_CASE("what an older installer has unpacked is held to the places of today before it is linked") {
  bundle::Entry wheel{.path = bundle::SafePath::parse("wheels/demo-1.0-py3-none-any.whl", "test"),
                      .kind = bundle::EntryKind::Wheel};
  const auto startup_with = [&](const std::string& path) {
    installer::UnpackedEntry unpacked{.entry = &wheel, .into = {}, .item = "/nowhere", .record = {}};
    unpacked.record.dist_info = "demo-1.0.dist-info";
    unpacked.record.files = {{.path = path, .size = 1, .sha256 = {}}};
    return installer::startup_of({}, unpacked);
  };
  for (const char* path : {"site-packages/demo/a.py", "bin/demo", "data/share/demo/x", "include/demo.h"})
    CHECK_NOTHROW(startup_with(path));
  CHECK_REFUSED(startup_with("site-packages/sitecustomize.py"), Format, "when Python starts");
  CHECK_REFUSED(startup_with("site-packages/nvidia/evil/lib/libm.so.6"), Conflict, "belongs to the runtime");
  CHECK_REFUSED(startup_with("bin/python3"), Conflict, "interpreter");
  CHECK_REFUSED(startup_with("bin/sh"), Conflict, "one of the system's");
  CHECK_REFUSED(startup_with("data/lib/python3.11/os.py"), Format, "by another way");
  CHECK_REFUSED(startup_with("data/pyvenv.cfg"), Format, "root of the environment");
}
