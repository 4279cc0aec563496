// SPDX-License-Identifier: Apache-2.0
// The installer starts in the sandbox, with an empty environment, as it will behind the gap: what it installs runs its
// self-test there, and sees the bundle, the work area and the system's programs.
#include "packager/pack/rehearse.hpp"

#include <algorithm>
#include <csignal>

#include "bundle/host/require_trusted.hpp"
#include "bundle/host/scratch_folder.hpp"
#include "bundle/host/waiver.hpp"
#include "packager/host/own_program.hpp"
#include "packager/host/sandbox.hpp"
#include "packager/pack/delta_bases.hpp"
#include "sealift/bundle/host/interrupt.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr const char* kRehearseElsewhere =
    "install bubblewrap (Debian: apt install bubblewrap), or rehearse on a machine that allows namespaces";

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

std::string last_words(const std::string& text) {
  return text.substr(text.size() > 4000 ? text.size() - 4000 : 0);
}

// A full disk, a system that gives no memory, and a killed installer judge this machine. bwrap and shells say
// 128 and the signal's number.
bool says_nothing_of_bundle(int exit_code) {
  for (const int signal : {SIGHUP, SIGINT, SIGKILL, SIGTERM})
    if (exit_code == 128 + signal) return true;
  return exit_code == static_cast<int>(ErrorCode::Space) || exit_code == static_cast<int>(ErrorCode::Io);
}

// Installs one bundle into the area's prefix, and returns the first line that its installer printed.
std::string install(const RehearseOptions& options, const fs::path& folder, const fs::path& area,
                    const std::vector<std::string>& waivers = {}) {
  const bool other = !options.system.empty();
  const fs::path bundle_there = other ? fs::path("/mnt/bundle") : folder;
  const fs::path area_there = other ? fs::path("/mnt/area") : area;
  SandboxedRun run{
      .command = {bundle_there / "sealift-install", "apply", bundle_there, "--prefix", area_there / "prefix",
                  "--fingerprint", "sha256:" + options.fingerprint.hex()},
      .environment = {{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}, {"LANG", "C.UTF-8"}, {"HOME", area_there.string()}},
      .readable = {folder},
      .writable = {area}};
  for (const std::string& waiver : waivers) run.command.insert(run.command.end(), {"--waive", waiver});
  const ProcessResult result = other ? run_sandboxed(run, {.root = fs::canonical(options.system),
                                                           .below_mnt = {{"area", area}},
                                                           .read_below_mnt = {{"bundle", folder}}})
                                     : run_sandboxed(run);
  if (result.exit_code == static_cast<int>(ErrorCode::Usage) && !waivers.empty())
    throw Error(ErrorCode::Usage, {.what = "the rehearsal's installer does not take these waivers; the bundle is not "
                                           "rehearsed",
                                   .where = folder.string(),
                                   .got = last_words(result.err),
                                   .next = "correct them, and: sealift-pack rehearse BUNDLE --fingerprint F"});
  if (says_nothing_of_bundle(result.exit_code))
    throw Error(
        ErrorCode::CannotCheck,
        {.what = "the rehearsal could not be finished on this machine, which says nothing of the bundle",
         .where = area.string(),
         .expected = "room, memory and time enough to install it",
         .got = std::to_string(result.exit_code) + ": " + last_words(result.err),
         .next = "make room, or name another folder: sealift-pack rehearse BUNDLE --fingerprint F --work-area DIR"});
  if (result.exit_code != 0)
    throw RehearsalFailure(result.exit_code <= static_cast<int>(ErrorCode::Revoked) && result.exit_code > 2
                               ? static_cast<ErrorCode>(result.exit_code)
                               : ErrorCode::SelfTest,
                           {.what = "the rehearsal failed: this bundle does not install without a network",
                            .where = folder.string(),
                            .expected = "exit code 0 of sealift-install apply",
                            .got = std::to_string(result.exit_code) + ": " + last_words(result.err),
                            .next = "do not hand it out; correct the job, raise its version and pack again"});
  return result.out.substr(0, result.out.find('\n'));
}

// What a delta builds on; that it does not install is no fault of the delta.
void install_first(const RehearseOptions& options, const fs::path& onto, const fs::path& area) {
  try {
    install(options, folder_of(verified_by(options, onto)), area);
  } catch (const RehearsalFailure& failure) {
    throw Error(failure.code(), failure.facts());
  }
}

// Under another name, where it can be looked at; returns that name.
fs::path set_aside(const fs::path& folder) {
  const fs::path first = fs::path(folder.string() + ".failed");
  fs::path aside = first;
  for (int i = 2; fs::exists(fs::symlink_status(aside)); ++i) aside = first.string() + "." + std::to_string(i);
  fs::rename(folder, aside);
  return aside;
}

// The target's programs must run here.
void require_own_arch(const std::string& arch) {
  if (arch == machine_arch()) return;
  throw Error(ErrorCode::CannotCheck, {.what = "a bundle for another architecture cannot be rehearsed here",
                                       .expected = "a machine of " + arch,
                                       .got = machine_arch(),
                                       .next = "rehearse on such a machine, or trust the target's own self-test"});
}

// The sandbox is given the work area by its name, and what runs there may write it: a process that could put a link in
// its place would have it write elsewhere.
void require_own_area(const fs::path& beside) {
  try {
    bundle::require_trusted_path(beside, bundle::Above::Site, "another user may have the rehearsal write elsewhere");
  } catch (const Error& error) {
    bundle::Facts facts = error.facts();
    facts.next = "rehearse in a folder of this account's: sealift-pack rehearse BUNDLE --fingerprint F --work-area DIR";
    throw Error(ErrorCode::CannotCheck, std::move(facts));
  }
}

[[noreturn]] void refuse_delta_alone(const RehearseOptions& options, const bundle::Manifest& delta,
                                     const fs::path& folder) {
  std::string command =
      "sealift-pack rehearse " + folder.string() + " --fingerprint sha256:" + options.fingerprint.hex();
  const std::vector<fs::path> bases = delta_bases(delta, folder.parent_path(), options.fingerprint);
  for (const fs::path& base : bases) command += " --onto " + base.string();
  throw Error(
      ErrorCode::CannotCheck,
      {.what = "a delta cannot be rehearsed without the bundles that it builds on",
       .where = folder.string(),
       .expected = "what the prefix held whose inventory it was made for, sha256:" + delta.base->hex(),
       .got = bases.empty() ? "no --onto, and no bundles beside it that carry all of that" : "no --onto",
       .next = bases.empty() ? "name the bundles that were installed there, oldest first: --onto BUNDLE" : command});
}

[[noreturn]] void refuse_image_alone(const fs::path& folder) {
  throw Error(ErrorCode::CannotCheck,
              {.what = "a bundle that carries its environment as an image alone cannot be installed",
               .where = folder.string(),
               .expected = "the wheels that the image was made of",
               .got = "a job with [squashfs] wheels = false",
               .next = "`create` rehearsed what it made the image of; or lock the job without wheels = false"});
}

std::string system_name(const fs::path& system, const bundle::Manifest& manifest) {
  return system.empty() ? "this machine's own system; the bundle is for glibc " + manifest.target.glibc.text() +
                              " and up, which --system DIR with such a system would try"
                        : system.string();
}

}  // namespace

Rehearsal rehearse(const RehearseOptions& options, bundle::Progress& progress) {
  bundle::parse_waivers(options.waivers);
  const bundle::VerifiedBundle verified = verified_by(options, options.bundle);
  const fs::path folder = folder_of(verified);
  if (verified.manifest().base && options.onto.empty()) refuse_delta_alone(options, verified.manifest(), folder);
  if (carries_image_alone(verified.manifest())) refuse_image_alone(folder);
  require_own_arch(verified.manifest().target.arch);
  require_sandbox(kRehearseElsewhere);
  const fs::path beside = fs::canonical(options.work_area.empty() ? folder.parent_path() : options.work_area);
  require_own_area(beside);
  bundle::ScratchFolder::remove_abandoned(beside, ".rehearsal");
  const bundle::ScratchFolder area(".rehearsal", beside);
  progress.note("rehearsing: installing into " + area.path().string() + ", without a network");
  for (const fs::path& onto : options.onto) install_first(options, onto, area.path());
  return {.system = system_name(options.system, verified.manifest()),
          .installed = install(options, folder, area.path(), options.waivers)};
}

namespace {

NewRehearsal not_yet(const std::string& why, bundle::Progress& progress) {
  progress.warn("not rehearsed: " + why + "; `sealift-pack rehearse` does it later");
  return NewRehearsal{.why_not = why};
}

void note(const Rehearsal& done, const std::vector<std::string>& waivers, bundle::Progress& progress) {
  progress.note("rehearsed: " + done.installed + " in " + done.system);
  if (!waivers.empty())
    progress.warn("rehearsed with --waive: the installing site decides again, and names the same checks");
}

// Whether it says nothing of the bundle.
bool is_of_machine(const Error& error) {
  const auto of_machine = {ErrorCode::CannotCheck, ErrorCode::Space, ErrorCode::Io};
  return std::find(of_machine.begin(), of_machine.end(), error.code()) != of_machine.end();
}

}  // namespace

NewRehearsal rehearse_new(const fs::path& folder, const std::vector<RoleStatus>& roles, const fs::path& system,
                          const std::vector<fs::path>& onto, const std::vector<std::string>& waivers,
                          bundle::Progress& progress) {
  for (const RoleStatus& role : roles)
    if (role.signatures < role.threshold) return not_yet("signatures are missing", progress);
  try {
    Rehearsal done = rehearse({.bundle = folder,
                               .fingerprint = bundle::open(folder).seal.roots.front().digest(),
                               .system = system,
                               .onto = onto,
                               .work_area = {},
                               .waivers = waivers},
                              progress);
    note(done, waivers, progress);
    return {.done = std::move(done)};
  } catch (const RehearsalFailure& failure) {
    bundle::Facts facts = failure.facts();
    facts.where = set_aside(folder).string();
    facts.next = "it was renamed, so that nobody hands it out; correct the job, lock and create again, and remove it";
    throw RehearsalFailure(failure.code(), std::move(facts));
  } catch (const Error& error) {
    if (!is_of_machine(error)) throw;
    return not_yet(error.facts().what + " (" + error.facts().got + ")", progress);
  } catch (bundle::Interrupted& stopped) {
    stopped.next = "the bundle is whole, and not rehearsed: `sealift-pack rehearse` does it later";
    throw;
  }
}

NewRehearsal rehearse_draft(const fs::path& folder, const bundle::Digest& fingerprint, const fs::path& system,
                            const std::vector<std::string>& waivers, bundle::Progress& progress) {
  try {
    Rehearsal done = rehearse({.bundle = folder,
                               .fingerprint = fingerprint,
                               .system = system,
                               .onto = {},
                               .work_area = {},
                               .waivers = waivers},
                              progress);
    note(done, waivers, progress);
    return {.done = std::move(done)};
  } catch (const RehearsalFailure& failure) {
    bundle::Facts facts = failure.facts();
    facts.where = "what the image was made of";
    facts.next = "correct the job, lock and create again; no bundle was written";
    throw RehearsalFailure(failure.code(), std::move(facts));
  } catch (const Error& error) {
    if (!is_of_machine(error)) throw;
    const std::string why = error.facts().what + " (" + error.facts().got + ")";
    progress.warn("not rehearsed: " + why + "; pack it once with the wheels to rehearse it");
    return {.why_not = why};
  }
}

}  // namespace sealift::packager
