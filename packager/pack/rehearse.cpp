// SPDX-License-Identifier: Apache-2.0
// The sandbox is a network namespace whose only device is a loopback that is down, made by util-linux' unshare, for an
// ordinary user inside a user namespace. The installer starts with an empty environment, as it will behind the gap.
#include "packager/pack/rehearse.hpp"

#include <unistd.h>

#include "packager/host/process.hpp"
#include "packager/host/scratch_folder.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// Mounts the bundle and the work area below /mnt of the other system; nothing is written into that system.
constexpr const char* kEnter =
    "set -e\n"
    "system=$1 bundle=$2 area=$3; shift 3\n"
    "mount -t tmpfs tmpfs \"$system/mnt\"\n"
    "mkdir \"$system/mnt/bundle\" \"$system/mnt/area\"\n"
    "mount --bind \"$bundle\" \"$system/mnt/bundle\"\n"
    "mount --bind \"$area\" \"$system/mnt/area\"\n"
    "mount --rbind /dev \"$system/dev\"\n"
    "exec chroot \"$system\" \"$@\"\n";

std::vector<std::string> without_network(bool other_system) {
  std::vector<std::string> command = {"unshare", "--net"};
  if (::geteuid() != 0) command.insert(command.end(), {"--user", "--map-root-user"});
  if (other_system) command.emplace_back("--mount");
  command.emplace_back("--");
  return command;
}

// A sandbox with a network would make the rehearsal worthless, so its network devices are listed first.
void require_sandbox(std::vector<std::string> command) {
  command.insert(command.end(), {"cat", "/proc/net/dev"});
  const ProcessResult result = run_process(command);
  std::string devices;
  for (std::size_t colon = result.out.find(':'); colon != std::string::npos; colon = result.out.find(':', colon + 1)) {
    const std::size_t line = result.out.rfind('\n', colon) + 1;
    const std::size_t name = result.out.find_first_not_of(' ', line);
    devices += (devices.empty() ? "" : ", ") + result.out.substr(name, colon - name);
  }
  if (result.exit_code == 0 && devices == "lo") return;
  throw Error(ErrorCode::CannotCheck,
              {.what = "this machine cannot start a process without a network, so nothing can be rehearsed here",
               .where = "unshare --net",
               .expected = "no network device but lo",
               .got = result.exit_code == 0 ? devices : result.err.substr(0, 500),
               .next = "rehearse as root, or where user namespaces are allowed"});
}

// Verified, and with the installer that travels with it.
fs::path folder_of(const bundle::VerifiedBundle& verified) {
  const fs::path folder = fs::canonical(verified.folder());
  if (!fs::is_regular_file(folder / "sealift-install"))
    throw Error(ErrorCode::Missing, {.what = "the installer is not beside the bundle",
                                     .where = (folder / "sealift-install").string(),
                                     .next = "put the one there that sealift-pack create wrote"});
  return folder;
}

bundle::VerifiedBundle verified_by(const RehearseOptions& options, const fs::path& path) {
  return bundle::verify(bundle::open(path), {.state = {.pinned = options.fingerprint}}, bundle::system_time());
}

// Installs one bundle into the area's prefix, and returns the first line that its installer printed.
std::string install(const RehearseOptions& options, const fs::path& folder, const fs::path& area) {
  const bool other = !options.system.empty();
  std::vector<std::string> command = without_network(other);
  const fs::path bundle_there = other ? fs::path("/mnt/bundle") : folder;
  const fs::path area_there = other ? fs::path("/mnt/area") : area;
  command.insert(command.end(),
                 {"env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=" + area_there.string()});
  if (other) command.insert(command.end(), {"sh", "-c", kEnter, "enter", fs::canonical(options.system), folder, area});
  command.insert(command.end(), {bundle_there / "sealift-install", "apply", bundle_there, "--prefix",
                                 area_there / "prefix", "--fingerprint", "sha256:" + options.fingerprint.hex()});
  const ProcessResult result = run_process(command);
  if (result.exit_code != 0)
    throw Error(result.exit_code <= static_cast<int>(ErrorCode::Revoked) && result.exit_code > 2
                    ? static_cast<ErrorCode>(result.exit_code)
                    : ErrorCode::SelfTest,
                {.what = "the rehearsal failed: this bundle does not install without a network",
                 .where = folder.string(),
                 .expected = "exit code 0 of sealift-install apply",
                 .got = std::to_string(result.exit_code) + ": " +
                        result.err.substr(result.err.size() > 4000 ? result.err.size() - 4000 : 0),
                 .next = "do not hand it out; correct the job, raise its version and pack again"});
  return result.out.substr(0, result.out.find('\n'));
}

std::string system_name(const fs::path& system, const bundle::Manifest& manifest) {
  return system.empty() ? "this machine's own system; the bundle is for glibc " + manifest.target.glibc.text() +
                              " and up, which --system DIR with such a system would try"
                        : system.string();
}

}  // namespace

Rehearsal rehearse(const RehearseOptions& options, Console& console) {
  const bundle::VerifiedBundle verified = verified_by(options, options.bundle);
  const fs::path folder = folder_of(verified);
  if (verified.manifest().base && options.onto.empty())
    throw Error(ErrorCode::CannotCheck, {.what = "a delta cannot be rehearsed without the bundles that it builds on",
                                         .where = folder.string(),
                                         .expected = "the bundles that it builds on",
                                         .got = "none",
                                         .next = "name them, oldest first: --onto BUNDLE"});
  require_sandbox(without_network(!options.system.empty()));
  const ScratchFolder area(".rehearsal",
                           fs::canonical(options.work_area.empty() ? folder.parent_path() : options.work_area));
  console.note("rehearsing: installing into " + area.path().string() + ", without a network");
  for (const fs::path& onto : options.onto) install(options, folder_of(verified_by(options, onto)), area.path());
  return {.system = system_name(options.system, verified.manifest()),
          .installed = install(options, folder, area.path())};
}

NewRehearsal rehearse_new(const fs::path& folder, const std::vector<RoleStatus>& roles, const fs::path& system,
                          const std::vector<fs::path>& onto, Console& console) {
  const auto not_yet = [&](const std::string& why) {
    console.warn("not rehearsed: " + why + "; `sealift-pack rehearse` does it later");
    return NewRehearsal{.why_not = why};
  };
  for (const RoleStatus& role : roles)
    if (role.signatures < role.threshold) return not_yet("signatures are missing");
  try {
    Rehearsal done = rehearse({.bundle = folder,
                               .fingerprint = bundle::open(folder).seal.roots.front().digest(),
                               .system = system,
                               .onto = onto,
                               .work_area = {}},
                              console);
    console.note("rehearsed: " + done.installed + " in " + done.system);
    return {.done = std::move(done)};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::CannotCheck) throw;
    return not_yet(error.facts().what + " (" + error.facts().got + ")");
  }
}

}  // namespace sealift::packager
