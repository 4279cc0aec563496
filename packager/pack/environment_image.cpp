// SPDX-License-Identifier: Apache-2.0
// draft bundle -> sealift-install image -> what it printed; see environment_image.hpp.
#include "packager/pack/environment_image.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bundle/core/json.hpp"
#include "packager/files/new_bundle_folder.hpp"
#include "packager/host/process.hpp"
#include "packager/keys/keygen.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

struct Sealed {
  Signing signing;
  bundle::Digest fingerprint;
};

// Nobody else ever trusts this root, and nobody has its key once this returns to its caller's caller.
Sealed signing_of_this_run() {
  Sealed sealed;
  sealed.signing.keys.push_back(bundle::PrivateKey::generate());
  sealed.signing.roots = {root_of_one_key(sealed.signing.keys.front())};
  sealed.fingerprint = sealed.signing.roots.front().digest();
  return sealed;
}

std::uint64_t installed_size(const PackPlan& plan) {
  std::uint64_t size = 0;
  for (const PlannedEntry& entry : plan.entries)
    if (entry.content.is_installed()) size += entry.draft.installed_size;
  return size;
}

// What an installer says last is why it refuses.
[[noreturn]] void refuse_as_it_did(const ProcessResult& result, const fs::path& installer) {
  const bool ours = result.exit_code > 2 && result.exit_code <= static_cast<int>(ErrorCode::Revoked);
  throw Error(ours ? static_cast<ErrorCode>(result.exit_code) : ErrorCode::Io,
              {.what = "sealift-install could not make the environment's image",
               .where = installer.string(),
               .expected = "exit code 0 of sealift-install image",
               .got = std::to_string(result.exit_code) + ": " +
                      result.err.substr(result.err.size() > 4000 ? result.err.size() - 4000 : 0),
               .next = "correct what it says, or leave [squashfs] out of the job"});
}

bundle::Digest root_of(const std::string& printed) {
  const bundle::Json json = bundle::parse_json(printed, "sealift-install image");
  const std::optional<bundle::Digest> root =
      json.is_object() && json.contains("root") && json.at("root").is_string()
          ? bundle::Digest::from_hex(json.at("root").get_ref<const std::string&>())
          : std::nullopt;
  if (!root)
    throw Error(ErrorCode::Format, {.what = "sealift-install image printed no root hash",
                                    .expected = "the sealift-install of this release",
                                    .got = printed.substr(0, 400)});
  return *root;
}

PlannedEntry entry_of(const fs::path& file, const bundle::Digest& root, bundle::Progress& progress) {
  const std::uint64_t size = fs::file_size(file);
  progress.begin("hashing the image", size);
  const bundle::Digest sha256 = digest_of_file(file, [&](std::uint64_t count) {
    bundle::stop_if_interrupted();
    progress.add(count);
  });
  progress.end();
  PlannedEntry entry{.content = {.kind = Content::Kind::File,
                                 .name = "the environment's image",
                                 .owner = "the job's [squashfs]",
                                 .entry = kImageEntry,
                                 .into = {},
                                 .size = size,
                                 .sha256 = sha256,
                                 .origin = FromDisk{file}},
                     .draft = {},
                     .file = file};
  entry.draft.path = bundle::SafePath::parse(kImageEntry, "the image");
  entry.draft.kind = bundle::EntryKind::Squashfs;
  entry.draft.size = size;
  entry.draft.sha256 = sha256;
  entry.draft.verity = root;
  return entry;
}

}  // namespace

EnvironmentImage make_environment_image(const PackPlan& plan, const fs::path& scratch, const fs::path& installer,
                                        const Stock& stock, bundle::Progress& progress, const OnDraft& on_draft) {
  check_space(scratch, plan.total_size() + 2 * installed_size(plan));
  progress.note("making the environment's image, as sealift-install makes it of a bundle: in " + scratch.string());
  const fs::path draft = scratch / plan.draft.stem(), file = scratch / "image.sqfs";
  fs::create_directory(draft);
  const Sealed sealed = signing_of_this_run();
  PackPlan whole = plan;
  whole.recovery_percent = 0;
  WrittenBundle written = write_bundle(whole, draft, 0, sealed.signing, stock, progress);
  const ProcessResult made =
      run_in({installer.string(), "image", draft.string(), "--fingerprint",
              bundle::fingerprint_text(sealed.fingerprint), "-o", file.string(), "--verity", "--json"},
             {{"PATH", "/usr/bin:/bin"}, {"LANG", "C.UTF-8"}});
  bundle::stop_if_interrupted();
  if (made.exit_code != 0) refuse_as_it_did(made, installer);
  if (on_draft) on_draft(draft, sealed.fingerprint);
  std::error_code ignored;
  fs::remove_all(draft, ignored);  // before the bundle is written
  return {.entry = entry_of(file, root_of(made.out), progress),
          .mended = written.mended,
          .draft = std::move(written.manifest)};
}

void add_image(PackPlan& plan, const EnvironmentImage& image, bool alone) {
  for (PlannedEntry& entry : plan.entries) {
    if (!alone || !entry.content.is_installed()) continue;
    entry.draft.absent = true;
    entry.draft.content = image.draft.find(entry.draft.path)->content;
  }
  const auto behind =
      std::upper_bound(plan.entries.begin(), plan.entries.end(), image.entry,
                       [](const PlannedEntry& a, const PlannedEntry& b) { return a.draft.path < b.draft.path; });
  plan.entries.insert(behind, image.entry);
}

}  // namespace sealift::packager
