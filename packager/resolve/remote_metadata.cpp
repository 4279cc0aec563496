// SPDX-License-Identifier: Apache-2.0
// Ranges, else the whole file; see remote_metadata.hpp. A wheel that is read for uv is read again when it is fetched,
// by its digest, so a lie here is a conflict then.
#include "packager/resolve/remote_metadata.hpp"

#include <fmt/format.h>

#include "bundle/host/scratch_folder.hpp"
#include "packager/files/known_chunks.hpp"
#include "packager/host/url.hpp"
#include "packager/network/http_request.hpp"
#include "packager/network/remote_documents.hpp"
#include "packager/network/remote_file.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/wheel/wheel.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMostWhole = std::uint64_t{256} << 20;  // of a wheel whose server sends no parts
constexpr std::uint64_t kMostUnpinned = std::uint64_t{16} << 30;

SourceMetadata metadata_in(bundle::ByteSource& source, const std::string& file_name,
                           const std::vector<StartupRule>& startup_files) {
  const auto name = bundle::parse_wheel_name(file_name);
  if (!name) throw Error(ErrorCode::Format, {.what = "this is not the name of a wheel", .where = file_name});
  const std::string project = bundle::normalized_project_name(name->name);
  const bundle::Wheel wheel(source, file_name, allowed_files(startup_files, project));
  return metadata_of(project, name->version, wheel.metadata());
}

// Into the cache; its digest.
bundle::Digest fetch_unpinned(const std::string& name, const std::string& url, const HttpLogins& logins,
                              const Cache& cache, bundle::Progress& progress) {
  progress.note(name + " has no SHA-256 in its index; it is fetched, and pinned by its own");
  const bundle::ScratchFolder scratch("unpinned", cache.scratch());
  const std::filesystem::path path = scratch / "file";
  bundle::OutputFile file(path);
  bundle::Hasher hasher;
  std::uint64_t size = 0;
  const HttpResponse response =
      run_request({.url = url, .logins = &logins, .take = [&](bundle::ByteView bytes) {
                     if ((size += bytes.size()) > kMostUnpinned)
                       throw Error(ErrorCode::Network, {.what = "a file has no end", .where = shown_url(url)});
                     hasher.update(bytes);
                     file.write(bytes);
                   }});
  if (!response.failure.empty())
    throw Error(ErrorCode::Network, {.what = "a file without a SHA-256 cannot be fetched: " + name,
                                     .where = shown_url(url),
                                     .got = response.failure,
                                     .next = response.needs_login ? logins.remedy(url) : "run the same command again"});
  file.sync();
  const bundle::Digest digest = hasher.finish();
  if (!cache.contains(digest)) cache.adopt(path, digest);
  return digest;
}

}  // namespace

SourceMetadata read_remote_metadata(const std::string& url, const HttpLogins& logins,
                                    const std::vector<StartupRule>& startup_files) {
  const std::optional<Url> parsed = parse_url(url);
  const std::string file_name = parsed ? parsed->file_name() : url;
  const std::uint64_t size = remote_sizes({url}, 1, logins).front();
  if (size > 0) try {
      RemoteFile source(url, size, logins);
      return metadata_in(source, file_name, startup_files);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Network) throw;
    }
  const std::string whole = get_documents({url}, {}, kMostWhole, {}, "uv cannot read a wheel, and neither can we",
                                          "require another version of it, or tell the owner of the index", &logins)
                                .front()
                                .body;
  const bundle::ByteView bytes = bundle::as_bytes(whole);
  bundle::MemorySource source(bundle::Bytes(bytes.begin(), bytes.end()), file_name);
  return metadata_in(source, file_name, startup_files);
}

void pin_unpinned(PythonChoice& choice, const HttpLogins& logins, const Cache& cache, bundle::Progress& progress) {
  for (LockedWheel& wheel : choice.wheels)
    if (wheel.sha256 == bundle::Digest()) {
      wheel.sha256 = fetch_unpinned(wheel.name + " " + wheel.version, wheel.url, logins, cache, progress);
      wheel.size = std::filesystem::file_size(cache.path(wheel.sha256));
    }
  for (SourcePackage& source : choice.sources)
    if (source.kind == SourceKind::Archive && source.sha256 == bundle::Digest())
      source.sha256 = fetch_unpinned(source.title(), source.url, logins, cache, progress);
}

}  // namespace sealift::packager
