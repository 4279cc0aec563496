// SPDX-License-Identifier: Apache-2.0
// The story of `create`; see create.hpp. Everything that can be refused is refused before the first byte is written.
#include "packager/create.hpp"

#include <fmt/format.h>

#include <charconv>
#include <thread>

#include "packager/debian/apt_files.hpp"
#include "packager/python/built_wheels.hpp"
#include "packager/pack/create_space.hpp"
#include "packager/pack/delta.hpp"
#include "packager/native/driver_floor.hpp"
#include "packager/python/interpreter.hpp"
#include "packager/keys/key_file.hpp"
#include "packager/models/model_check.hpp"
#include "packager/models/model_files.hpp"
#include "packager/files/new_bundle_folder.hpp"
#include "packager/host/own_program.hpp"
#include "packager/pack/pack_plan.hpp"
#include "packager/host/process.hpp"
#include "packager/python/resolve.hpp"
#include "sealift/bundle/bundle_writer.hpp"
#include "sealift/bundle/host/interrupt.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

std::vector<Download> downloads_of(const Lock& lock) {
  std::vector<Download> downloads = downloads_of(lock.models);
  for (const LockedWheel& wheel : lock.wheels)
    if (!wheel.built_from)
      downloads.push_back({.name = wheel.file_name, .url = wheel.url, .sha256 = wheel.sha256, .size = wheel.size});
  for (Download& deb : downloads_of(lock.apt)) downloads.push_back(std::move(deb));
  return downloads;
}

// Only asked for when a wheel has to be built again: uv, and the very version of Python that the lock was made with.
BuildTools build_tools_for(const Lock& lock) {
  Job job;  // what finds an interpreter wants one
  job.python = lock.python;
  const fs::path uv = find_uv({});
  const ProcessResult same = run_process({uv.string(), "python", "find", "--system", lock.interpreter.version},
                                         {{"UV_PYTHON_DOWNLOADS", "never"}});
  if (same.exit_code == 0) job.interpreter = same.out.substr(0, same.out.find('\n'));
  const Interpreter interpreter = find_interpreter(job, uv, {});
  return {.uv = uv,
          .python = interpreter.executable,
          .python_version = interpreter.version,
          .build_constraints = {},
          .index_words = {}};
}

// A file that reports how much of it was read.
class WatchedSource final : public bundle::ByteSource {
 public:
  WatchedSource(const fs::path& path, Progress& progress) : source_(path), progress_(progress) {}

  std::uint64_t size() const override { return source_.size(); }
  std::string name() const override { return source_.name(); }
  bundle::ByteView view(std::uint64_t offset, std::size_t wanted) override {
    bundle::stop_if_interrupted();
    const bundle::ByteView piece = source_.view(offset, wanted);
    progress_.add(piece.size());
    return piece;
  }

 private:
  bundle::FileSource source_;
  Progress& progress_;
};

// Who signs, and the roots that let them; read and judged before the long work begins.
struct Signing {
  std::vector<bundle::Envelope> roots;
  std::vector<bundle::PrivateKey> keys;
};

Signing read_signing(const CreateOptions& options) {
  Signing signing{.roots = read_roots(options.roots), .keys = {}};
  for (const fs::path& file : options.keys) {
    signing.keys.push_back(read_private_key(file, options.passphrase));
    require_release_role(signing.roots, signing.keys.back().public_key());
  }
  return signing;
}

bundle::Manifest write_bundle(const PackPlan& plan, const fs::path& folder, std::uint64_t volume_size,
                              const Signing& signing, Console& console) {
  Progress progress(console, "writing " + plan.draft.stem(), plan.size());
  bundle::BundleWriter writer(folder, plan.draft, volume_size);
  for (const PlannedEntry& entry : plan.entries) {
    if (entry.draft.absent) {
      writer.add_absent(entry.draft);
      continue;
    }
    WatchedSource source(fs::canonical(entry.file), progress);
    writer.add(entry.draft, source);
  }
  for (std::size_t i = 0; i < plan.companions.size(); ++i) {
    const bundle::Companion& companion = plan.draft.companions[i];
    const fs::path copy = folder / companion.name;
    fs::copy_file(plan.companions[i], copy);
    fs::permissions(copy, fs::perms(0755));
    if (::fsync(bundle::InputFile(copy).descriptor()) != 0) bundle::throw_errno("a file cannot be synced", copy);
    if (digest_of_file(copy) != companion.sha256)
      throw Error(ErrorCode::Digest, {.what = companion.name + " changed while it was copied",
                                      .where = plan.companions[i].string(),
                                      .next = "run the same command again"});
  }
  bundle::Manifest manifest = writer.finish(signing.roots, signing.keys);
  progress.finish();
  return manifest;
}

// From what is in the cache to the finished folder.
CreateResult pack(const Lock& lock, const Cache& cache, const Companions& companions, const Signing& signing,
                  const std::optional<bundle::Inventory>& base, const CreateOptions& options, const fs::path& folder,
                  Console& console) {
  rebuild_missing(
      lock, [&] { return build_tools_for(lock); }, cache, console, options.fetch);
  require_sound(
      lock.models, [&](const LockedModel& model, const LockedFile& file) { return local_file(model, file, cache); },
      console);
  PackPlan plan = plan_pack(lock, cache, companions);
  if (base) make_delta(plan, *base, console);
  NativeReport native = check_native(lock, cache, console, plan.left_out);
  plan.draft.glibc_floor = std::max(plan.draft.glibc_floor, glibc_floor(native));
  if (native.cuda) plan.draft.driver_floor = driver_floor(*native.cuda).value_or("");

  fs::create_directories(folder.parent_path());
  std::uint64_t beside = 0;
  for (const bundle::Companion& companion : plan.draft.companions) beside += companion.size;
  check_space(folder.parent_path(), plan.size() + beside);
  PartialFolder partial(folder);
  bundle::Manifest manifest = write_bundle(plan, partial.path(), options.volume_size, signing, console);
  bundle::stop_if_interrupted();
  partial.become(folder);
  CreateResult result{.folder = folder,
                      .manifest = std::move(manifest),
                      .signers = {},
                      .findings = offline_findings(lock.wheels),
                      .roles = {},
                      .native = std::move(native)};
  for (const bundle::PrivateKey& key : signing.keys) result.signers.push_back(key.public_key().id());
  result.roles = bundle_status(bundle::open(folder).seal);
  return result;
}

}  // namespace

CreateResult create(const CreateOptions& options, Console& console) {
  const Lock lock = read_lock(options.lock);
  const Signing signing = read_signing(options);
  std::optional<bundle::Inventory> base;
  if (!options.base.empty()) base = read_inventory(options.base);
  const fs::path installer = find_own_program(options.installer, "sealift-install", "--installer", lock.target.arch);
  const Companions companions = {{"sealift-install", installer}, {"audit.sh", find_audit_script(installer)}};
  const fs::path folder = fs::absolute(options.out).lexically_normal() / lock.stem();
  refuse_existing(folder);

  const Cache cache(options.cache.empty() ? Cache::default_root() : options.cache);
  require_inputs(lock, cache);
  // Every entry is hashed while it is written, so what the cache has is not read beforehand. Only when something of it
  // turns out to be wrong all of it is looked at, and what is damaged comes again.
  const std::vector<Download> downloads = downloads_of(lock);
  require_space(lock, downloads, cache, folder.parent_path());
  FetchOptions what_is_missing = options.fetch;
  what_is_missing.trust_cache = true;
  fetch(downloads, cache, console, what_is_missing);
  try {
    return pack(lock, cache, companions, signing, base, options, folder, console);
  } catch (const Error& error) {
    const bool damage = error.code() == ErrorCode::Digest || error.code() == ErrorCode::Format;
    if (!damage || fetch(downloads, cache, console, options.fetch) == 0) throw;
  }
  return pack(lock, cache, companions, signing, base, options, folder, console);
}

std::uint64_t parse_size(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  static constexpr std::string_view kUnits = "KMGT";
  const std::size_t power = unit.empty() || unit == "B" ? 0 : kUnits.find(unit[0]) + 1;
  const bool decimal = unit.size() == 2 && unit[1] == 'B';
  if (fault != std::errc() || (power == 0 && !unit.empty() && unit != "B") || unit.size() > 2 ||
      (unit.size() == 2 && !decimal))
    throw Error(ErrorCode::Usage, {.what = "this is not a size", .expected = "like 4700M, 1G or 25GB", .got = text});
  for (std::size_t i = 0; i < power; ++i) {
    if (value > bundle::kMaxPayloadSize)
      throw Error(ErrorCode::Usage, {.what = "a size is too large", .expected = "at most 1024T", .got = text});
    value *= decimal ? 1000 : 1024;
  }
  return value;
}

}  // namespace sealift::packager
