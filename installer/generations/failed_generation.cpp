// SPDX-License-Identifier: Apache-2.0
// Assembled in staging and named by one rename, like everything else; the reason is a small JSON file beside it.
#include "installer/generations/failed_generation.hpp"

#include <optional>

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

constexpr const char* kReason = "reason.json";
constexpr std::uint64_t kMaxFailure = std::uint64_t{1} << 20;

bundle::Json json_of(const FailedGeneration& failure) {
  bundle::Json json = {{"format", kRecordFormat},
                       {"generation", failure.number},
                       {"name", failure.name},
                       {"version", failure.version},
                       {"identity", failure.identity.hex()},
                       {"failed", failure.failed},
                       {"where", failure.where},
                       {"got", failure.got}};
  if (!failure.added_to.empty()) json["added_to"] = failure.added_to;
  return json;
}

}  // namespace

void keep_failed(const Prefix& prefix, const FailedGeneration& failure, const fs::path& built, const fs::path& staging,
                 Disk& disk) {
  try {
    const fs::path aside = staging / "failed";
    disk.make_folder(aside);
    disk.rename(built, aside / "generation");
    disk.write_new(aside / kReason, bundle::write_json(json_of(failure)) + "\n", 0444);
    disk.sync_all(aside);
    forget_failed(prefix, disk);
    disk.rename(aside, prefix.failed());
    disk.sync_folder(prefix.folder());
  } catch (const bundle::Error&) {  // the first failure is what the operator must see
  }
}

std::optional<FailedGeneration> failed_generation(const Prefix& prefix) {
  const fs::path path = prefix.failed() / kReason;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  try {
    const bundle::Json json = bundle::parse_json(bundle::read_text(path, kMaxFailure), path.string());
    bundle::JsonObject object(json, path.string());
    check_record_format(object);
    FailedGeneration failed;
    failed.number = static_cast<unsigned>(object.integer("generation", 1'000'000'000));
    failed.name = object.string("name");
    failed.version = object.integer("version");
    failed.identity = object.digest("identity");
    if (object.has("added_to")) failed.added_to = object.string("added_to");
    failed.failed = object.string("failed");
    failed.where = object.string("where", kMaxFailure);
    failed.got = object.string("got", kMaxFailure);
    object.done();
    return failed;
  } catch (const bundle::Error&) {
    return std::nullopt;
  }
}

bool forget_failed(const Prefix& prefix, Disk& disk) {
  std::error_code ignored;
  if (!fs::exists(prefix.failed(), ignored)) return false;
  disk.remove_tree(prefix.failed());
  return true;
}

}  // namespace sealift::installer
