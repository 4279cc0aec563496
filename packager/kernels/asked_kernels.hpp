// SPDX-License-Identifier: Apache-2.0
// asked.tsv, built in: what the code of packages asks a hub for, by release, as a program read it in their wheels.
#pragma once

#include <string>
#include <vector>

#include "sealift/bundle/core/version.hpp"

namespace sealift::packager {

struct AskedKernel {
  std::string repo;
  std::vector<std::string> revisions;  // any of them, by the release of torch
  std::string when;                    // "itself", "layers", "backend": tests/packager/kernels/asked_by_wheels.py
};

struct LoaderWindow {
  bundle::Version first;
  bundle::Version before = {.major = 1'000'000};
  std::string text;  // ">=0.15.2,<0.16.0"; empty: any release

  bool holds(const bundle::Version& loader) const { return loader >= first && loader < before; }
};

struct Asking {
  LoaderWindow window;  // releases of kernels beside which the package asks
  std::vector<AskedKernel> kernels;
};

// Of one release of a package; a release that nobody read is told as the newest older one. No kernels: it asks for
// none.
Asking asked_by(const std::string& package, const bundle::Version& release);

}  // namespace sealift::packager
