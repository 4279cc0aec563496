// SPDX-License-Identifier: Apache-2.0
// A wheel's files by scheme; tests/installer/layout/installed_path_test.cpp holds the installer to the same answers.
#include "sealift/bundle/wheel/installed_path.hpp"

#include <doctest/doctest.h>

using namespace sealift::bundle;

TEST_CASE("every scheme of a wheel has its folder in a generation") {
  const std::string site = site_packages_of("3.11"), info = "my_demo-1.0.dist-info";
  CHECK(site == "lib/python3.11/site-packages");
  CHECK(installed_path(Scheme::SitePackages, "demo/a.py", info, site) == "lib/python3.11/site-packages/demo/a.py");
  CHECK(installed_path(Scheme::Scripts, "demo", info, site) == "bin/demo");
  CHECK(installed_path(Scheme::Headers, "demo/a.h", info, site) == "include/python3.11/my_demo/demo/a.h");
  CHECK(installed_path(Scheme::Data, "share/demo/a", info, site) == "share/demo/a");
}
