// SPDX-License-Identifier: Apache-2.0
// What an rpm package says of itself, read from its own header: `lock` holds an index to it, documents tell it. Nothing
// is unpacked and no signature is checked here; rpmkeys does that.
#pragma once

#include <string>

#include "sealift/bundle/core/byte_source.hpp"

namespace sealift::packager {

struct RpmHeader {
  std::string name;
  std::string epoch = "0";
  std::string version;
  std::string release;
  std::string arch;     // "x86_64", "noarch"
  std::string licence;  // as its maker states it; may be empty
  std::string vendor;   // the same
  bool source = false;  // a package of sources, which installs nothing

  // "1:2.0-1.el9", without an epoch of 0.
  std::string evr() const { return (epoch == "0" ? "" : epoch + ":") + version + "-" + release; }
};

// Reads the two headers and nothing behind them. Throws Format unless it is an rpm package of version 3 or 4, and for
// headers that are larger than any is.
RpmHeader read_rpm_header(bundle::ByteSource& package);

}  // namespace sealift::packager
