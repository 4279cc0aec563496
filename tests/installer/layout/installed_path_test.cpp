// SPDX-License-Identifier: Apache-2.0
// A stored file of each scheme lies where the packager said that it would.
#include "sealift/bundle/wheel/installed_path.hpp"

#include <doctest/doctest.h>

#include "installer/layout/layout.hpp"

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
