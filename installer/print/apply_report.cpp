// SPDX-License-Identifier: Apache-2.0
// The entries are listed only by a dry run: after an installation their number is enough.
#include "installer/print/apply_report.hpp"

#include <algorithm>

#include "bundle/core/json_object.hpp"
#include "installer/generations/record_facts.hpp"
#include "installer/host/mending.hpp"
#include "installer/print/signers.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

namespace {

std::string headline(const Applied& applied, bool dry_run) {
  const std::string bundle = applied.name + " version " + std::to_string(applied.version) +
                             (applied.added_to ? ", added to " + *applied.added_to + "," : "");
  const std::string generation = "generation " + std::to_string(applied.generation);
  switch (applied.action) {
    case InstallPlan::Action::Nothing:
      return "already installed: " + bundle + " is " + generation + ", which is current; nothing to do\n";
    case InstallPlan::Action::SwitchTo:
      return (dry_run ? "would switch back to " : "switched back to ") + bundle + ", which is installed as " +
             generation + "\n";
    case InstallPlan::Action::Install:
      break;
  }
  return (dry_run ? "would install " : "installed ") + bundle + " as " + generation + "\n";
}

// What of the medium was looked at: an installation that needs little of it says nothing of the rest.
std::string medium_text(const Applied& applied) {
  const std::string chunks = std::to_string(applied.chunks) + " chunks";
  if (applied.chunks_read == applied.chunks) return "all " + chunks + " read and right";
  return std::to_string(applied.chunks_read) + " of " + chunks +
         " read and right; the others were not needed and not looked at (sealift-install verify reads all)";
}

std::string seconds(std::uint64_t milliseconds) {
  return std::to_string(milliseconds / 1000) + "." + std::to_string(milliseconds / 100 % 10);
}

// What the self-test cost beside installing, so that who waits knows for what.
std::string times_text(const Applied& applied) {
  std::string parts;
  for (const SelfCheck::Took& took : applied.record->self_check.took)
    parts += (parts.empty() ? " (" : ", ") + took.part + " " + seconds(took.milliseconds);
  return "unpacking " + seconds(applied.times.unpack) + " s, building " + seconds(applied.times.build) +
         " s, self-test " + seconds(applied.times.self_test) + " s" + (parts.empty() ? "" : parts + ")");
}

bundle::Json json_of_times(const Applied& applied) {
  bundle::Json parts = bundle::Json::object();
  for (const SelfCheck::Took& took : applied.record->self_check.took) parts[took.part] = took.milliseconds;
  return {{"unpack", applied.times.unpack},
          {"build", applied.times.build},
          {"self_test", applied.times.self_test},
          {"parts", std::move(parts)}};
}

}  // namespace

bundle::Json json_of(const Applied& applied, const ApplyOptions& options) {
  bundle::Json json = {{"action", std::string(name_of(applied.action))},
                       {"dry_run", options.dry_run},
                       {"name", applied.name},
                       {"version", applied.version},
                       {"identity", applied.identity.hex()},
                       {"signers", fingerprints(applied.signers)},
                       {"root", json_of(applied.root)},
                       {"warnings", applied.warnings},
                       {"preflight", warnings_of(applied.findings)},
                       {"prefix", options.prefix.folder().string()},
                       {"generation", applied.generation},
                       {"added_to", applied.added_to ? bundle::Json(*applied.added_to) : bundle::Json()},
                       {"added", to_json(applied.added)},
                       {"unpack", applied.unpacked},
                       {"reuse", applied.reused},
                       {"hashed_files", applied.hashed},
                       {"chunks", applied.chunks},
                       {"chunks_read", applied.chunks_read},
                       {"mended", to_json(applied.mended)},
                       {"needed_bytes", applied.needed_bytes},
                       {"free_bytes", applied.free.bytes},
                       {"needed_inodes", applied.needed_inodes},
                       {"free_inodes", std::min(applied.free.inodes, bundle::kMaxJsonInteger)}};
  if (applied.record) {
    json["audit"] = to_json(applied.record->audit);
    json["self_test"] = to_json(applied.record->self_check);
    json["milliseconds"] = json_of_times(applied);
  }
  return json;
}

std::string text_of(const Applied& applied, const ApplyOptions& options) {
  std::string text = headline(applied, options.dry_run);
  const auto line = [&text](const char* label, const std::string& value) { text += "  " + (label + value) + "\n"; };
  line("identity  ", bundle::fingerprint_text(applied.identity));
  line("signed by ", text_of(applied.signers));
  line("root      ", text_of(applied.root));
  for (const GenerationRecord::Bundle& added : applied.added)
    if (added.identity != applied.identity) line("beside    ", words_for(added) + ", which was added before");
  if (applied.action == InstallPlan::Action::Install) {
    line("entries   ", std::to_string(applied.unpacked.size()) + " unpacked, " + std::to_string(applied.reused.size()) +
                           " reused from the store");
    if (options.dry_run) {
      for (const std::string& path : applied.unpacked) line("new       ", path);
      for (const std::string& path : applied.reused) line("reused    ", path);
    }
    line("room      ", bundle::human_size(applied.needed_bytes) + " and " + std::to_string(applied.needed_inodes) +
                           " inodes at most, of " + bundle::human_size(applied.free.bytes) + " free");
  }
  if (!options.dry_run) {
    if (applied.hashed > 0)
      line("hashed    ", std::to_string(applied.hashed) + " reused files, whose stamps did not match");
    line("medium    ", medium_text(applied));
    if (!applied.mended.empty())
      line("mended    ", text_of(applied.mended) + "; replace what these lie on (sealift-install verify lists all)");
  }
  if (applied.record) {
    line("audit     ", facts_of(applied.record->audit));
    line("self-test ", facts_of(applied.record->self_check));
    line("time      ", times_text(applied));
  }
  std::error_code ignored;
  const std::filesystem::path current = options.prefix.current(), programs = current / "bin";
  if (!options.dry_run) line("use it    ", (std::filesystem::exists(programs, ignored) ? programs : current).string());
  return text;
}

}  // namespace sealift::installer
