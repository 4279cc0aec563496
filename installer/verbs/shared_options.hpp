// SPDX-License-Identifier: Apache-2.0
// Options that several verbs have, with one name and one meaning everywhere.
// Paths stay as they were typed here; Prefix makes its own absolute when the verb runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bundle/host/command_line.hpp"
#include "installer/apply/apply_options.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

// One more than there are processors, since one thread may wait for the disk; 2 to 10. Each holds a few chunks, so more
// than ten by default would exceed the documented 256 MiB.
unsigned default_threads();

// What every verb that reads a bundle accepts.
struct BundleOptions {
  std::filesystem::path bundle;
  std::vector<std::filesystem::path> volumes;  // further folders with volumes of the bundle
  std::string fingerprint;                     // of the trust root to begin from; empty: the pinned one
  bool allow_downgrade = false;
  bool sandboxed_builds_only = false;
  unsigned threads = default_threads();
};

void add_bundle_options(const bundle::Verb& verb, BundleOptions& options, bool required = true);
// Of these, all that say where its volumes are and which one is believed.
void add_bundle_trust(const bundle::Verb& verb, BundleOptions& options);
void add_prefix(const bundle::Verb& verb, std::filesystem::path& prefix, bool required = true);
void add_threads(const bundle::Verb& verb, unsigned& threads);
void add_allow_other_name(const bundle::Verb& verb, bool& allow_other_name);
// --add and --drop-added: what becomes of what is added to an environment.
struct AdditionOptions {
  bool add = false;
  bool drop = false;

  Additions asked() const;  // throws Usage for both
};
void add_additions(const bundle::Verb& verb, AdditionOptions& options);
void add_compile_bytecode(const bundle::Verb& verb, bool& compile_bytecode);

// What `apply` and `plan` begin with: the bundle, the prefix and this machine, probed now.
ApplyOptions apply_options_of(const BundleOptions& bundle, const std::filesystem::path& prefix, bool compile_bytecode);

// What a verb that installs nothing believes: the trust of `prefix`, where one is named, and --fingerprint.
bundle::Trust trust_of(const BundleOptions& options, const std::filesystem::path& prefix);
// The options by which that trust was given, for the commands of messages.
std::string trust_words(const BundleOptions& options, const std::filesystem::path& prefix);
// The bundle behind the gate; what is damaged on the medium is mended. `read_once`: past the system's page cache.
bundle::VerifiedBundle verified_of(const BundleOptions& options, const std::filesystem::path& prefix,
                                   const bundle::Trust& trust, bool read_once = true);

// Nothing for an empty text; throws Usage for one that is not a fingerprint.
std::optional<bundle::Digest> fingerprint_of(const std::string& text);

}  // namespace sealift::installer
