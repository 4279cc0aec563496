// SPDX-License-Identifier: Apache-2.0
// The findings about the prefix. File systems are known by their numbers in statfs(2); unknown numbers pass,
// since a new one is more often good than bad and the audit checks the result.
#include <algorithm>
#include <map>

#include "bundle/core/json_object.hpp"
#include "installer/preflight/preflight.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

using bundle::ErrorCode;
using Verdict = Finding::Verdict;

namespace {

enum class Family { Foreign, Kernel, Network, Volatile, MayLackLinks, Fine };

struct KnownFileSystem {
  const char* name;
  Family family;
};

const std::map<long, KnownFileSystem>& file_systems() {
  static const std::map<long, KnownFileSystem> table = {
      {0x4d44, {"FAT", Family::Foreign}},           {0x2011BAB0, {"exFAT", Family::Foreign}},
      {0x5346544e, {"NTFS", Family::Foreign}},      {0x7366746e, {"NTFS", Family::Foreign}},
      {0x9fa0, {"proc", Family::Kernel}},           {0x62656572, {"sysfs", Family::Kernel}},
      {0x27e0eb, {"cgroup", Family::Kernel}},       {0x63677270, {"cgroup", Family::Kernel}},
      {0x64626720, {"debugfs", Family::Kernel}},    {0x1cd1, {"devpts", Family::Kernel}},
      {0x6969, {"NFS", Family::Network}},           {0x01021994, {"tmpfs", Family::Volatile}},
      {0x858458f6, {"ramfs", Family::Volatile}},    {0x65735546, {"FUSE", Family::MayLackLinks}},
      {0xff534d42, {"CIFS", Family::MayLackLinks}}, {0xfe534d42, {"SMB", Family::MayLackLinks}},
      {0x5346414f, {"AFS", Family::MayLackLinks}},  {0xef53, {"ext4", Family::Fine}},
      {0x58465342, {"XFS", Family::Fine}},          {0x9123683e, {"btrfs", Family::Fine}},
      {0x794c7630, {"overlay", Family::Fine}},      {0x0bd00bd0, {"Lustre", Family::Fine}},
      {0x47504653, {"GPFS", Family::Fine}},         {0x19830326, {"BeeGFS", Family::Fine}},
      {0x00c36400, {"Ceph", Family::Fine}},         {0x2fc12fc1, {"ZFS", Family::Fine}}};
  return table;
}

Finding noted(Verdict verdict, std::string check, bundle::Facts facts, ErrorCode code = ErrorCode::Platform) {
  return {.check = std::move(check), .verdict = verdict, .facts = std::move(facts), .code = code};
}

Finding file_system(const PrefixFilesystem& filesystem) {
  const auto type = file_systems().find(filesystem.mount.type);
  const KnownFileSystem what =
      type == file_systems().end() ? KnownFileSystem{"not known by its number", Family::Fine} : type->second;
  const std::string needed = "a Linux file system that is mounted rw,exec";
  const char* fault = what.family == Family::Kernel    ? "shows the kernel's own data and keeps no files"
                      : filesystem.mount.read_only     ? "it is mounted read-only"
                      : filesystem.mount.no_exec       ? "it is mounted noexec, so no interpreter starts from it"
                      : what.family == Family::Foreign ? "has no links and no modes"
                                                       : nullptr;
  const bool named = what.family == Family::Foreign || what.family == Family::Kernel;
  if (fault != nullptr)
    return noted(Verdict::Fail, "file system",
                 {.what = "no environment can live on this file system",
                  .where = filesystem.path.string(),
                  .expected = needed,
                  .got = named ? std::string(what.name) + ", which " + fault : fault,
                  .next = "choose a --prefix on another file system"});
  if (!filesystem.mounted_inside.empty())
    return noted(
        Verdict::Fail, "file system",
        {.what = "a folder of the prefix is on another file system than the prefix",
         .where = filesystem.mounted_inside.front().string(),
         .expected = "one file system, so that one rename puts a finished item in its place",
         .got = "a mount of its own",
         .next = "mount that file system at " + filesystem.path.string() + " itself, or choose another --prefix"});
  const auto warn = [&](std::string sentence, std::string next) {
    return noted(Verdict::Warn, "file system",
                 {.what = std::move(sentence),
                  .where = filesystem.path.string(),
                  .expected = needed,
                  .got = what.name,
                  .next = std::move(next)});
  };
  switch (what.family) {
    case Family::Network:
      return warn("the prefix is on NFS",
                  "mount it with locks (not nolock); install from one node; the others see the switch when their "
                  "attribute caches end, after a minute at most");
    case Family::Volatile:
      return warn("the prefix is in memory", "it is gone after a restart; choose a disk if it should stay");
    case Family::MayLackLinks:
      return warn("this file system may have no hard links",
                  "then files are copied, and every generation takes its whole size; choose another one for several");
    case Family::Foreign:
    case Family::Kernel:
    case Family::Fine:
      break;
  }
  return noted(Verdict::Ok, "file system", {.what = {}, .expected = needed, .got = what.name});
}

Finding writable(const PrefixFilesystem& filesystem) {
  if (filesystem.writable)
    return noted(Verdict::Ok, "permission", {.what = {}, .expected = "a folder to write in", .got = "writable"});
  return noted(Verdict::Fail, "permission",
               {.what = "this user may not write here",
                .where = filesystem.path.string(),
                .expected = "a folder to write in",
                .got = "permission denied",
                .next = "run this as the user who owns the prefix, or choose a --prefix below a folder of yours"},
               ErrorCode::Io);
}

Finding letter_case(const PrefixFilesystem& filesystem) {
  if (!filesystem.folds_case)
    return noted(Verdict::Ok, "case", {.what = {}, .expected = "a and A are two names", .got = "two names"});
  return noted(
      Verdict::Warn, "case",
      {.what = "upper and lower case are one here",
       .where = filesystem.path.string(),
       .expected = "a and A are two names",
       .got = "one name",
       .next = "a package with two files that differ in nothing else is refused while it is unpacked; choose a "
               "folder without case folding (chattr -F, or a Linux file system)"});
}

Finding space(const PrefixFilesystem& filesystem, const InstallPlan& plan) {
  const std::string needed = std::to_string(plan.needed_bytes) + " bytes free",
                    got = std::to_string(plan.free.bytes) + " bytes free";
  if (plan.needed_bytes <= plan.free.bytes)
    return noted(Verdict::Ok, "space",
                 {.what = {},
                  .expected = bundle::human_size(plan.needed_bytes),
                  .got = bundle::human_size(plan.free.bytes) + " free"});
  return noted(Verdict::Fail, "space",
               {.what = "there is not enough room for the bundle; nothing was written",
                .where = filesystem.path.string(),
                .expected = needed,
                .got = got,
                .next = "make room, or choose a --prefix on a larger file system"},
               ErrorCode::Space);
}

Finding inodes(const PrefixFilesystem& filesystem, const InstallPlan& plan) {
  const bool counted = plan.free.inodes <= bundle::kMaxJsonInteger;
  const std::string got = counted ? std::to_string(plan.free.inodes) + " inodes free" : "not limited";
  const std::string needed = std::to_string(plan.needed_inodes) + " inodes free";
  if (plan.needed_inodes <= plan.free.inodes)
    return noted(Verdict::Ok, "inodes", {.what = {}, .expected = needed, .got = got});
  return noted(Verdict::Fail, "inodes",
               {.what = "there are not enough inodes for the bundle; nothing was written",
                .where = filesystem.path.string(),
                .expected = needed,
                .got = got,
                .next = "remove small files, or choose a --prefix on another file system"},
               ErrorCode::Space);
}

}  // namespace

std::vector<Finding> prefix_findings(const PrefixFilesystem& filesystem, const InstallPlan& plan) {
  return {file_system(filesystem), writable(filesystem), letter_case(filesystem), space(filesystem, plan),
          inodes(filesystem, plan)};
}

}  // namespace sealift::installer
