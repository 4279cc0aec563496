// SPDX-License-Identifier: Apache-2.0
// The story of `create`; see create.hpp. Everything that can be refused is refused before the first byte is written.
#include "packager/create.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "bundle/host/scratch_folder.hpp"
#include "packager/debian/signed_release.hpp"
#include "packager/delta/delta.hpp"
#include "packager/files/new_bundle_folder.hpp"
#include "packager/host/own_program.hpp"
#include "packager/host/own_variables.hpp"
#include "packager/models/model_files.hpp"
#include "packager/native/driver_floor.hpp"
#include "packager/pack/content_supply.hpp"
#include "packager/pack/contents.hpp"
#include "packager/pack/create_space.hpp"
#include "packager/pack/plan_check.hpp"
#include "packager/pack/write_bundle.hpp"
#include "packager/resolve/signed_addresses.hpp"
#include "packager/rpm/signed_index.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/open_bundle.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

Companions find_companions(const CreateOptions& options, const Lock& lock) {
  const fs::path installer = find_own_program(options.installer, "sealift-install", "--installer", lock.target.arch);
  return {{"sealift-install", installer}, {"audit.sh", find_audit_script(installer)}};
}

void require_sent_bundle(const std::optional<Base>& base) {
  if (base && base->sent) return;
  throw bundle::Error(bundle::ErrorCode::Usage,
                      {.what = "patches are made on wheels, and an inventory does not say which wheels a target has",
                       .expected = "--base with the bundle that was sent last",
                       .got = base ? "--base with an inventory" : "no --base",
                       .next = "name that bundle's folder or seal, or leave --patches out"});
}

// The sealift-install that travels, or for another machine's bundle the one of this machine's release.
fs::path installer_of_this_machine(const Companions& companions, const Lock& lock) {
  if (lock.target.arch == machine_arch()) return companions.at("sealift-install");
  return find_own_program({}, "sealift-install", "--installer", machine_arch());
}

// Of all that it carries, each blob once.
std::uint64_t stored_size(const bundle::Manifest& manifest) {
  std::map<std::uint64_t, std::uint64_t> blobs;
  for (const bundle::Entry& entry : manifest.entries) blobs.emplace(entry.offset, entry.stored_size);
  std::uint64_t size = 0;
  for (const auto& [offset, stored] : blobs) size += stored;
  return size;
}

void refuse_delta_alone() {
  throw bundle::Error(bundle::ErrorCode::Usage,
                      {.what = "a delta has the wheels that are new, and the job leaves all of them out",
                       .where = "[squashfs] wheels = false",
                       .expected = "no --base, or a job that carries its wheels",
                       .next = "leave --base out, or lock the job without wheels = false"});
}

// In exact bytes, too: which of both is worth its room is the packer's to say.
void note_sizes(const EnvironmentImage& image, bool alone, bundle::Progress& progress) {
  const std::uint64_t own = image.entry.draft.size, others = stored_size(image.draft);
  progress.note("the environment's image takes " + bundle::human_size(own) + " of the payload (" + std::to_string(own) +
                " bytes), and what it was made of " + bundle::human_size(others) + " (" + std::to_string(others) +
                " bytes) " +
                (alone ? "that are left out: nothing can be installed of it, or served to pip and uv"
                       : "beside it, for `apply` and the repository; [squashfs] wheels = false leaves that out"));
}

// What was built just now counts as built in this way, whatever the lock says of an earlier build.
void note_builds(std::vector<Content>& contents, const std::set<bundle::Digest>& built, Isolation isolation,
                 bundle::Progress& progress) {
  std::vector<std::string> unsandboxed;
  for (Content& content : contents) {
    auto* source = std::get_if<FromSource>(&content.origin);
    if (source == nullptr) continue;
    bool& sandboxed = source->wheel.built_from->sandboxed;
    sandboxed = sandboxed && !(isolation == Isolation::None && built.contains(content.sha256));
    if (!sandboxed) unsandboxed.push_back(content.name);
  }
  if (!unsandboxed.empty())
    progress.warn("built outside of a sandbox, and the signed manifest will say so: " + bundle::few_of(unsandboxed));
}

// What the native files were found to need, where tags of wheels promised less.
void raise_floors(bundle::Manifest& draft, const NativeReport& native) {
  draft.glibc_floor = std::max(draft.glibc_floor, glibc_floor(native));
  if (native.cuda) draft.driver_floor = driver_floor(*native.cuda).value_or("");
  draft.gpu_code = native.gpu_code;
}

// Planning and the native check hash no wheel. What they found of a file that was written from another one counts for
// nothing, unless the right one, which now lies in the cache, gives the same.
void require_same(const PackPlan& checked, const PackPlan& again) {
  const auto same = [](const PlannedEntry& a, const PlannedEntry& b) { return a.draft == b.draft; };
  if (checked.draft == again.draft &&
      std::equal(checked.entries.begin(), checked.entries.end(), again.entries.begin(), again.entries.end(), same))
    return;
  throw bundle::Error(bundle::ErrorCode::Digest,
                      {.what = "a file in the cache was another one than was locked, and was checked in its place",
                       .where = checked.draft.stem(),
                       .next = "the right one was fetched: run the same command again"});
}

}  // namespace

CreateResult create(const CreateOptions& options, bundle::Progress& progress) {
  // What is asked for.
  const Lock lock = read_lock(options.lock);
  const Signing signing = read_signing(read_roots(options.roots), options.keys, options.passphrase);
  for (const std::string& warning : signing.warnings) progress.warn(warning);
  std::optional<Base> base;
  if (!options.base.empty()) base = read_base(options.base, signing.roots);
  if (options.patches) require_sent_bundle(base);
  if (base && lock.squashfs && !lock.squashfs->wheels) refuse_delta_alone();
  const Companions companions = find_companions(options, lock);
  const fs::path folder = fs::absolute(options.out).lexically_normal() / lock.stem();
  refuse_existing(folder);

  // Its bytes, on this machine.
  const Cache cache(options.cache.empty() ? Cache::default_root() : options.cache, lock.payload_digest);
  for (const std::string& variable : foreign_variables()) progress.warn(variable + kNotGoneBy);
  std::vector<Content> contents = contents_of(lock);
  require_inputs(contents, cache);
  if (!options.apt_key.empty())
    for (Content& content : signed_release(lock, options.apt_key, progress)) contents.push_back(std::move(content));
  if (!options.rpm_key.empty())
    for (Content& content : signed_index(lock, options.rpm_key, cache, progress))
      contents.push_back(std::move(content));
  require_space(contents, cache, folder.parent_path());
  FetchOptions fetching = options.fetch;
  fetching.logins = index_logins(lock.indexes);
  const auto is_away = [&](const LockedWheel& wheel) { return !cache.contains(wheel.sha256); };
  if (std::any_of(lock.wheels.begin(), lock.wheels.end(), is_away))
    ask_signed_addresses(lock.indexes.signed_pages, fetching.logins, fetching);
  const ContentSupply supply(
      cache, progress, fetching,
      {.python_version = lock.interpreter.version, .indexes = lock.indexes, .isolation = options.isolation});
  note_builds(contents, supply.bring(contents), options.isolation, progress);
  const Repair repair = [&](const Content& content) { return supply.repair(content); };

  // What will be written, and whether it will work.
  require_sound_files(lock.models, cache, repair, progress);
  PackPlan plan = plan_pack(lock, contents, companions, cache, repair);
  plan.recovery_percent = options.recovery_percent;
  if (plan.left_out_bytecode != 0)
    progress.note(
        std::to_string(plan.left_out_bytecode) +
        " compiled file(s) of wheels (__pycache__) will not be installed; Python compiles the sources itself");
  ToldWarnings told(cache, digest_of_file(options.lock));
  warn_of_contents(plan, told, progress);
  PackPlan checked = plan;  // without what a delta leaves out
  const KnownChunks known(cache);
  std::optional<bundle::ScratchFolder> scratch;  // until the patches are written
  if (options.patches) scratch.emplace("patches", cache.scratch());
  if (base) {
    const Patching patching{.cache = cache, .scratch = scratch ? scratch->path() : fs::path()};
    make_delta(plan, *base, known, repair, progress, scratch ? &patching : nullptr);
  }
  NativeReport native = check_native(plan, cache, repair, told, progress);
  raise_floors(plan.draft, native);
  raise_floors(checked.draft, native);

  // The environment as one image, where the job asks for it.
  std::optional<bundle::ScratchFolder> image_scratch;  // until the bundle is written
  bool mended = false;
  const bool alone = lock.squashfs && !lock.squashfs->wheels;
  if (lock.squashfs && base) {
    progress.warn("a delta carries no image ([squashfs]); where it was applied: sealift-install image PREFIX -o FILE");
  } else if (lock.squashfs) {
    image_scratch.emplace("image", cache.scratch());
    EnvironmentImage image =
        make_environment_image(plan, image_scratch->path(), installer_of_this_machine(companions, lock),
                               {cache, known, repair}, progress, alone ? options.on_draft : OnDraft());
    mended = image.mended;
    add_image(plan, image, alone);
    note_sizes(image, alone, progress);
  }

  // The bundle, which gets its name when it is whole.
  fs::create_directories(folder.parent_path());
  check_space(folder.parent_path(), plan.total_size());
  PartialFolder partial(folder);
  WrittenBundle written =
      write_bundle(plan, partial.path(), options.volume_size, signing, {cache, known, repair}, progress);
  if (written.mended || mended) {
    bundle::Progress silent(nullptr);
    PackPlan again = plan_pack(lock, contents, companions, cache, repair);
    raise_floors(again.draft, check_native(again, cache, repair, told, silent));
    require_same(checked, again);
  }
  keep_checked(plan, cache);
  CreateResult result{.folder = folder,
                      .manifest = std::move(written.manifest),
                      .signers = signing.signers(),
                      .findings = offline_findings(lock.wheels),
                      .roles = bundle_status(bundle::open(partial.path()).seal),
                      .native = std::move(native)};
  partial.become(folder);  // and from here on nothing can fail
  told.close(progress);
  cache.warn_of_notes(progress);
  return result;
}

}  // namespace sealift::packager
