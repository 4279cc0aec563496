// SPDX-License-Identifier: Apache-2.0
// Compares with the target that the signer promised, not with what the files happen to need: the signed promise is what
// was tested, and what needs less on one machine may need more on the next.
#include "installer/preflight.hpp"

#include <algorithm>

#include "sealift/bundle/safe_path.hpp"

namespace sealift::installer {

using bundle::Error;
using bundle::ErrorCode;

namespace {

// glibc travels along, so this machine's own, whatever it is, does not matter.
void check_kernel(const bundle::Manifest& manifest, const Machine& machine) {
  const std::string& needed = manifest.environment.runtime->kernel;
  if (machine.target.kernel.empty() || !bundle::version_below(machine.target.kernel, needed)) return;
  throw Error(ErrorCode::Platform, {.what = "this machine's kernel is older than the carried glibc asks for",
                                    .where = manifest.stem(),
                                    .expected = "Linux " + needed + " or newer",
                                    .got = "Linux " + machine.target.kernel,
                                    .next = "use a machine with a newer kernel"});
}

}  // namespace

void check_target(const bundle::Manifest& manifest, const Machine& machine) {
  const bundle::Target& target = manifest.target;
  if (machine.target.arch != target.arch)
    throw Error(ErrorCode::Platform, {.what = "the bundle is for another architecture",
                                      .where = manifest.stem(),
                                      .expected = target.arch,
                                      .got = machine.target.arch + " (this machine)",
                                      .next = "ask for a bundle made for " + machine.target.arch});
  if (manifest.environment.runtime) return check_kernel(manifest, machine);
  const std::string needed = "glibc " + target.glibc.text() + " or newer";
  if (machine.target.glibc == bundle::GlibcVersion{})
    throw Error(ErrorCode::Platform, {.what = "this machine has no GNU C library that can be found",
                                      .where = manifest.stem(),
                                      .expected = needed,
                                      .got = "no libc.so.6 in the usual folders",
                                      .next = "the bundle's programs cannot start here; use another machine"});
  if (machine.target.glibc < target.glibc)
    throw Error(ErrorCode::Platform,
                {.what = "this machine's C library is older than the bundle's target",
                 .where = machine.libc.string(),
                 .expected = needed,
                 .got = "glibc " + machine.target.glibc.text(),
                 .next = "ask for a bundle made for this machine: send the output of `sealift-install probe`"});
}

void check_prefix(const Prefix& prefix, const Disk& disk) {
  const std::string path = prefix.root().string();
  if (std::any_of(path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
    throw Error(ErrorCode::Usage, {.what = "the prefix's path holds a control character",
                                   .where = bundle::SafePath::printable(path),
                                   .next = "choose another --prefix"});
  const Mount mount = disk.mount(prefix.root());
  // FAT, exFAT and the two drivers of NTFS, by their numbers in statfs(2): no links, no modes, no difference of case.
  constexpr long kForeign[] = {0x4d44, 0x2011BAB0, 0x5346544e, 0x7366746e};
  const char* fault = mount.read_only ? "it is mounted read-only"
                      : mount.no_exec ? "it is mounted noexec, so no interpreter starts from it"
                      : std::count(std::begin(kForeign), std::end(kForeign), mount.type) != 0
                          ? "it is FAT, exFAT or NTFS, which has no links and no modes"
                          : nullptr;
  if (fault != nullptr)
    throw Error(ErrorCode::Platform, {.what = "no environment can live on this file system",
                                      .where = path,
                                      .expected = "a Linux file system that is mounted rw,exec",
                                      .got = fault,
                                      .next = "choose a --prefix on another file system"});
}

}  // namespace sealift::installer
