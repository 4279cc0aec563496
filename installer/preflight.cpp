// SPDX-License-Identifier: Apache-2.0
// Compares with the target that the signer promised, not with what the files happen to need: the signed promise is what
// was tested, and what needs less on one machine may need more on the next.
#include "installer/preflight.hpp"

#include "sealift/bundle/error.hpp"

namespace sealift::installer {

using bundle::Error;
using bundle::ErrorCode;

void check_target(const bundle::Manifest& manifest, const Machine& machine) {
  const bundle::Target& target = manifest.target;
  if (machine.arch != target.arch)
    throw Error(ErrorCode::Platform, {.what = "the bundle is for another architecture",
                                      .where = manifest.stem(),
                                      .expected = target.arch,
                                      .got = machine.arch + " (this machine)",
                                      .next = "ask for a bundle made for " + machine.arch});
  const std::string needed = "glibc " + target.glibc.text() + " or newer";
  if (!machine.glibc)
    throw Error(ErrorCode::Platform, {.what = "this machine has no GNU C library that can be found",
                                      .where = manifest.stem(),
                                      .expected = needed,
                                      .got = "no libc.so.6 in the usual folders",
                                      .next = "the bundle's programs cannot start here; use another machine"});
  if (*machine.glibc < target.glibc)
    throw Error(ErrorCode::Platform,
                {.what = "this machine's C library is older than the bundle's target",
                 .where = machine.libc.string(),
                 .expected = needed,
                 .got = "glibc " + machine.glibc->text(),
                 .next = "ask for a bundle made for this machine: send the output of `sealift-install probe`"});
}

}  // namespace sealift::installer
