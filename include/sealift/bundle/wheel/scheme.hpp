// SPDX-License-Identifier: Apache-2.0
// The kinds of places that a wheel's files have. First of what is said about a file of a wheel.
// Source: packaging.python.org, "Binary distribution format", "The .data directory".
#pragma once

namespace sealift::bundle {

// Where a file of a wheel belongs. The installer maps each to a folder of the prefix.
enum class Scheme {
  SitePackages,  // purelib and platlib, which are one folder for us
  Scripts,
  Headers,
  Data,  // the prefix itself
};

}  // namespace sealift::bundle
