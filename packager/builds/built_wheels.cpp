// SPDX-License-Identifier: Apache-2.0
// Sources into the cache, then each one built, checked and adopted; see built_wheels.hpp.
#include "packager/builds/built_wheels.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "bundle/host/scratch_folder.hpp"
#include "packager/builds/build_failures.hpp"
#include "packager/builds/build_memory.hpp"
#include "packager/builds/build_place.hpp"
#include "packager/builds/stored_sources.hpp"
#include "packager/files/known_chunks.hpp"
#include "packager/resolve/wheel_tags.hpp"
#include "sealift/bundle/native/elf.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;
using bundle::GlibcVersion;

namespace {

constexpr std::uint64_t kMaxElf = std::uint64_t{1} << 30;  // of a file that was built here, read into memory

Download download_of(const std::string& name, const LockedBuild& build) {
  return {.name = name + " (source)", .url = build.url, .sha256 = build.sha256};
}

// The newest glibc that an ELF file of the wheel asks for.
GlibcVersion glibc_of(bundle::Wheel& wheel, const std::string& arch) {
  GlibcVersion floor{2, 17};
  for (const bundle::WheelFile& file : wheel.files()) {
    if (file.member.size > kMaxElf) continue;
    bundle::Bytes bytes;
    bool first = true, elf_file = true;
    wheel.extract(file, [&](bundle::ByteView piece) {
      if (std::exchange(first, false))
        elf_file = bundle::as_text(piece).starts_with(
            "\x7f"
            "ELF");
      if (elf_file) bytes.insert(bytes.end(), piece.begin(), piece.end());
    });
    if (bytes.empty()) continue;
    bundle::MemorySource source(std::move(bytes), file.member.name);
    const std::optional<bundle::ElfFile> elf = bundle::read_elf(source);
    if (!elf) continue;
    if (elf->arch != arch)
      throw Error(ErrorCode::Platform, {.what = "a file that was built is for another architecture",
                                        .where = file.member.name,
                                        .expected = arch,
                                        .got = elf->arch});
    floor = std::max(floor, elf->glibc_floor().value_or(GlibcVersion{}));
  }
  return floor;
}

// Opens the built wheel like any other; returns the glibc that it needs.
GlibcVersion check_wheel(const fs::path& file, const std::string& file_name, const SourcePackage& source,
                         const std::string& python, const bundle::Target& target,
                         const std::set<Digest>& startup_files) {
  bundle::FileSource bytes(file);
  bundle::Wheel wheel(bytes, file_name, startup_files);
  if (bundle::normalized_project_name(wheel.name().name) != source.name ||
      (!source.version.empty() && wheel.name().version != source.version))
    throw Error(ErrorCode::Conflict,
                {.what = "the build made a wheel of another package", .expected = source.title(), .got = file_name});
  if (!fit_wheel(file_name, python, target))
    throw Error(ErrorCode::Platform, {.what = "the build made a wheel that does not run on the target",
                                      .expected = "CPython " + python + " on " + target.arch,
                                      .got = file_name});
  const GlibcVersion floor = glibc_of(wheel, target.arch);
  if (target.glibc < floor)
    throw Error(ErrorCode::Platform, {.what = "what was built here needs a newer glibc than the target has",
                                      .expected = "glibc " + target.glibc.text() + " or older",
                                      .got = "glibc " + floor.text(),
                                      .next = "pack on an older distribution, or carry this machine's glibc: [target] "
                                              "runtime = \"carried\""});
  return floor;
}

// One wheel from a source in the cache, adopted by the cache; or its earlier wheel.
LockedWheel build_one(const SourcePackage& source, const Digest& archive, const BuildTools& tools,
                      const std::string& tool_names, const bundle::Target& target, const Cache& cache,
                      const std::vector<StartupRule>& startup_files, std::vector<NativeNeed>& needs,
                      bundle::Progress& progress) {
  const BuildPlace place(cache, archive);
  const BuildOrder order = order_of(source, archive, tools, cache);
  const BuildMemory memory(cache, archive, order, tools, tool_names);
  std::optional<RememberedBuild> made = memory.recall();
  if (made) {
    progress.note(source.title() + " was built before: " + made->file_name);
  } else {
    const BuiltWheel built = build_wheel(order, tools, place.path());
    made = RememberedBuild{.file_name = built.file.filename().string(),
                           .sha256 = KnownChunks(cache).learn(built.file),
                           .requirements = built.requirements};
    cache.adopt(built.file, made->sha256);
  }
  const fs::path file = cache.path(made->sha256);
  const std::string python = tools.python_version.substr(0, tools.python_version.rfind('.'));
  needs.push_back(
      {.who = made->file_name,
       .glibc = check_wheel(file, made->file_name, source, python, target, allowed_files(startup_files, source.name))});
  memory.remember(*made);  // once it has been looked at
  LockedWheel wheel{.name = source.name,
                    .version = bundle::parse_wheel_name(made->file_name)->version,
                    .file_name = made->file_name,
                    .url = {},
                    .sha256 = made->sha256,
                    .size = fs::file_size(file)};
  wheel.built_from = LockedBuild{.kind = source.kind,
                                 .url = source.url,
                                 .commit = source.commit,
                                 .subdirectory = source.subdirectory,
                                 .sha256 = archive,
                                 .requirements = made->requirements,
                                 .python = tools.python_version,
                                 .tools = tool_names,
                                 .variables = order.extras.variables,
                                 .sandboxed = tools.isolation == Isolation::Sandbox};
  return wheel;
}

}  // namespace

BuiltWheels build_sources(const std::vector<SourcePackage>& sources, const BuildTools& tools,
                          const bundle::Target& target, const Cache& cache, bundle::Progress& progress,
                          const WhoNeeds& who_needs, const std::vector<StartupRule>& startup_files) {
  BuiltWheels result;
  if (sources.empty()) return result;
  const bundle::ScratchFolder scratch("sources", cache.scratch());
  const std::vector<Digest> digests = store_sources(sources, tools, cache, scratch.path(), progress);
  const std::string tool_names = describe_tools(tools);
  BuildFailures failures(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    progress.note(fmt::format("building {} ({} of {})", sources[i].title(), i + 1, sources.size()));
    failures.collect(sources[i], [&] {
      result.wheels.push_back(
          build_one(sources[i], digests[i], tools, tool_names, target, cache, startup_files, result.needs, progress));
    });
  }
  failures.throw_any(tools, who_needs);
  return result;
}

std::set<Digest> rebuild_missing(const std::vector<LockedWheel>& wheels, const std::function<BuildTools()>& find_tools,
                                 const Cache& cache, bundle::Progress& progress, const FetchOptions& options) {
  std::vector<const LockedWheel*> missing;
  for (const LockedWheel& wheel : wheels)
    if (wheel.built_from && (!cache.contains(wheel.sha256) || digest_of_file(cache.path(wheel.sha256)) != wheel.sha256))
      missing.push_back(&wheel);
  std::set<Digest> built_again;
  if (missing.empty()) return built_again;
  std::vector<Download> downloads;
  std::string gone, differ;
  for (const LockedWheel* wheel : missing) {
    const LockedBuild& build = *wheel->built_from;
    if (build.kind == SourceKind::Archive)
      downloads.push_back(download_of(wheel->name, build));
    else if (!cache.contains(build.sha256) || digest_of_file(cache.path(build.sha256)) != build.sha256)
      gone += (gone.empty() ? "" : ", ") + wheel->name;
  }
  if (!gone.empty())
    throw Error(ErrorCode::Missing, {.what = "neither these built wheels nor their sources are in the cache",
                                     .where = cache.root().string(),
                                     .got = gone,
                                     .next = "run sealift-pack lock again with the same --cache"});
  if (!downloads.empty()) fetch(downloads, cache, progress, options);
  BuildTools tools = find_tools();
  tools.progress = &progress;
  for (const LockedWheel* wheel : missing) {
    const LockedBuild& build = *wheel->built_from;
    progress.note("building " + wheel->name + " " + wheel->version + " again: it is not in the cache");
    if (tools.python_version != build.python)
      throw Error(ErrorCode::Missing, {.what = "a wheel must be built again, with another Python than there is",
                                       .where = wheel->file_name,
                                       .expected = "CPython " + build.python,
                                       .got = "CPython " + tools.python_version,
                                       .next = "install that version, or run sealift-pack lock again"});
    const BuildPlace place(cache, build.sha256);
    const BuiltWheel built = build_wheel({.name = wheel->name,
                                          .version = wheel->version,
                                          .scm_version = build.kind == SourceKind::Git ? wheel->version : "",
                                          .archive = cache.path(build.sha256),
                                          .subdirectory = build.subdirectory,
                                          .again = true,
                                          .requirements = build.requirements,
                                          .extras = {.requirements = {}, .variables = build.variables}},
                                         tools, place.path());
    if (const Digest digest = KnownChunks(cache).learn(built.file); digest == wheel->sha256) {
      cache.adopt(built.file, digest);
      built_again.insert(digest);
    } else {
      differ += (differ.empty() ? "" : "; ") + wheel->file_name + " (locked with " + build.tools + ")";
    }
  }
  if (!differ.empty())
    throw Error(ErrorCode::Digest,
                {.what = "what was built again is not what was locked",
                 .expected = "the same bytes from the same source",
                 .got = differ + "; here is " + describe_tools(tools),
                 .next = "use the cache that the lock was made with, or run sealift-pack lock again"});
  return built_again;
}

}  // namespace sealift::packager
