// SPDX-License-Identifier: Apache-2.0
// Both copies are written with each change, the older or damaged one first: at any moment one of them is whole, and
// losing either later loses nothing. A run without a change still makes both copies whole and durable, since the run
// before it may have been killed half-way.
#include "installer/prefix/trust_store.hpp"

#include <fcntl.h>

#include <optional>

#include "installer/prefix/prefix_lock.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::TrustState;

namespace {

// Whether this copy already is `text`; false when it cannot be read.
bool holds(const fs::path& copy, std::string_view text) {
  try {
    return bundle::read_text(copy, bundle::kMaxTrustFile) == text;
  } catch (const bundle::Error&) {
    return false;
  }
}

std::string text_of_paths(const std::vector<fs::path>& files) {
  std::string text;
  for (const fs::path& file : files) text += (text.empty() ? "" : ", ") + file.string();
  return text;
}

}  // namespace

std::vector<bundle::Envelope> load_roots(const std::vector<fs::path>& files) {
  std::vector<bundle::Envelope> chain;
  for (const fs::path& file : files) {
    const bool is_bundle = fs::is_directory(file) || file.extension() == bundle::kSealSuffix;
    for (bundle::Envelope& root :
         is_bundle ? bundle::open(file).seal.roots
                   : bundle::parse_roots(bundle::read_text(file, bundle::kMaxSealSize), file.string()))
      chain.push_back(std::move(root));
  }
  return chain;
}

namespace {

// Signatures are checked before the prefix lock is taken; with it, only whether the site still trusts what it did then.
TrustChange take_in(const Prefix& prefix, Disk& disk, const std::vector<fs::path>& roots,
                    const std::optional<bundle::Digest>& fingerprint, const char* verb) {
  const std::vector<bundle::Envelope> chain = load_roots(roots);
  for (;;) {
    const TrustState before = bundle::trust_for_run(prefix.trust(), fingerprint);
    TrustChange change{.state = follow_roots(before, chain, text_of_paths(roots))};  // throws before a prefix is made
    const PrefixLock lock(prefix, disk, verb);
    if (bundle::trust_for_run(prefix.trust(), fingerprint) != before) continue;
    change.changed = save_trust(prefix, disk, change.state);
    return change;
  }
}

}  // namespace

TrustChange pin_root(const Prefix& prefix, Disk& disk, const std::vector<fs::path>& roots,
                     const bundle::Digest& fingerprint) {
  return take_in(prefix, disk, roots, fingerprint, "trust add");
}

TrustChange update_root(const Prefix& prefix, Disk& disk, const std::vector<fs::path>& roots) {
  return take_in(prefix, disk, roots, std::nullopt, "trust update");
}

bool save_trust(const Prefix& prefix, Disk& disk, const TrustState& state) {
  const std::optional<bundle::StoredTrust> stored = bundle::read_trust(prefix.trust());
  const bool changed = !stored || stored->state != state;
  disk.make_folders(prefix.trust());
  const std::string text = bundle::write_trust_copy(state, stored ? stored->counter + (changed ? 1 : 0) : 1);
  const std::size_t last = stored ? stored->copy : 1;
  const fs::path beside = prefix.trust() / "new";
  bool written = false;
  for (const std::size_t copy : {1 - last, last}) {
    const fs::path path = prefix.trust() / bundle::kTrustCopies[copy];
    if (holds(path, text)) continue;
    disk.remove_tree(beside);
    disk.write_new(beside, text, 0644);
    disk.sync_all(prefix.trust());
    disk.rename(beside, path);
    disk.sync_folder(prefix.trust());
    written = true;
  }
  if (!written) disk.sync_folder(prefix.trust());
  return changed;
}

}  // namespace sealift::installer
