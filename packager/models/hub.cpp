// SPDX-License-Identifier: Apache-2.0
// The hubs' routes; see hub.hpp. Source of the formats: the hub's OpenAPI description and the two clients' sources.
#include "packager/models/hub.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "bundle/core/json.hpp"
#include "packager/host/url.hpp"

namespace sealift::packager {

using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;
using bundle::Json;

namespace {

constexpr std::uint64_t kMaxAnswer = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 53;
constexpr std::size_t kMaxListed = 1'000'000;
constexpr std::size_t kMaxPages = 10'000;

[[noreturn]] void refuse(const std::string& where, const std::string& what, const std::string& got = {}) {
  throw Error(ErrorCode::Format, {.what = "the hub's answer is not valid: " + what,
                                  .where = where,
                                  .got = bundle::SafePath::printable(got),
                                  .next = "is the endpoint a hub of this kind, and not a login page or a proxy?"});
}

Json parsed(const std::string& text, const std::string& where) {
  try {
    return parse_strict_json(text, {.max_depth = 32, .max_values = bundle::kMaxJsonValues, .integers_only = false});
  } catch (const StrictJsonError& error) {
    refuse(where, error.what(), error.got());
  }
}

const Json& member(const Json& object, const char* key, const std::string& where) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) refuse(where, std::string("it has no '") + key + "'");
  return *found;
}

std::string text_of(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key, where);
  if (!value.is_string()) refuse(where, std::string("its '") + key + "' is not a string");
  return value.get<std::string>();
}

std::uint64_t size_of(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key, where);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMaxSize)  // a lock could not say it
    refuse(where, std::string("its '") + key + "' is not a size");
  return value.get<std::uint64_t>();
}

RemoteDocument get_one(const std::string& url, const ModelSpec& spec, const FetchOptions& options) {
  return std::move(get_documents({url}, token_for(spec), kMaxAnswer, options, "the hub does not describe " + spec.repo,
                                 hub_hint(spec))[0]);
}

void add_file(HubListing& listing, HubFile file, const std::string& digest, const std::string& where) {
  file.path = bundle::SafePath::parse(file.path, where).text();
  if (!digest.empty()) {
    file.sha256 = Digest::from_hex(digest);
    if (!file.sha256) refuse(where, "this is not a SHA-256", digest);
  }
  if (listing.files.size() == kMaxListed) refuse(where, "there are more than a million files");
  listing.files.push_back(std::move(file));
}

// The URL of the next page, from a header like `<URL>; rel="next"`. Only its path is taken, so that the token stays
// with the endpoint, and a mirror need not rewrite the header.
std::string next_page(const std::string& link, const ModelSpec& spec, const std::string& where) {
  for (std::size_t begin = 0; (begin = link.find('<', begin)) != link.npos; ++begin) {
    const std::size_t end = link.find('>', begin);
    if (end == link.npos) break;
    const std::size_t after = link.find(',', end);
    if (link.substr(end, after == link.npos ? after : after - end).find("rel=\"next\"") == link.npos) continue;
    const std::string url = link.substr(begin + 1, end - begin - 1);
    const std::optional<Url> next = parse_url(url);
    const std::size_t api = next ? next->path.find("/api/") : url.npos;
    if (api == url.npos) refuse(where, "its next page is not a page of a hub", without_credentials(url));
    return spec.endpoint + next->path.substr(api) + (next->has_query ? "?" + next->query : "");
  }
  return {};
}

const char* kind_of(const ModelSpec& spec) {
  return spec.kernel ? "kernels" : spec.data ? "datasets" : "models";
}

HubListing list_hf(const ModelSpec& spec, const FetchOptions& options) {
  const std::string api = fmt::format("{}/api/{}/{}", spec.endpoint, kind_of(spec), spec.repo);
  const std::string revision = api + "/revision/" + percent_encoded(spec.revision);
  HubListing listing{.commit = text_of(parsed(get_one(revision, spec, options).body, revision), "sha", revision),
                     .files = {}};
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (listing.commit.size() != 40 || !std::all_of(listing.commit.begin(), listing.commit.end(), hex))
    refuse(revision, "its commit is not one", listing.commit);
  std::string page = api + "/tree/" + listing.commit + "?recursive=true";
  for (std::size_t pages = 0; !page.empty(); ++pages) {
    if (pages == kMaxPages) refuse(page, "its pages do not end");
    const RemoteDocument answer = get_one(page, spec, options);
    const Json items = parsed(answer.body, page);
    if (!items.is_array()) refuse(page, "it is not a list of files");
    for (const Json& item : items) {
      if (text_of(item, "type", page) != "file") continue;
      const bool lfs = item.contains("lfs") && item["lfs"].is_object();
      add_file(
          listing,
          {.path = text_of(item, "path", page), .size = size_of(lfs ? item["lfs"] : item, "size", page), .sha256 = {}},
          lfs ? text_of(item["lfs"], "oid", page) : "", page);
    }
    page = next_page(answer.link, spec, page);
  }
  return listing;
}

// ModelScope cuts each listing at this many entries, silently: no flag, no total, no pages (modelscope_hub 0.5.1,
// constants.py, REPO_FILES_TRUNCATION_LIMIT). Only a listing below it is known to be whole.
constexpr std::size_t kModelScopeCut = 3000;
constexpr std::size_t kScopePage = 200;  // of a data set, whose list has pages; what the client asks for

struct ScopeEntries {
  std::vector<std::pair<HubFile, std::string>> files;  // and the digest as the hub spells it
  std::vector<std::string> folders;
  std::string url;  // for messages

  std::size_t count() const { return files.size() + folders.size(); }
  bool cut() const { return count() >= kModelScopeCut; }
};

// What the hub answers here; all of it lies below `root`, a folder of the repository, where that is not empty.
ScopeEntries ask_scope(const std::string& url, const ModelSpec& spec, const std::string& root,
                       const FetchOptions& options) {
  const Json answer = parsed(get_one(url, spec, options).body, url);
  const Json& data = member(answer, "Data", url);
  const Json& items = data.is_array() ? data : member(data, "Files", url);
  if (!items.is_array() && !items.is_null()) refuse(url, "it is not a list of files");  // null: an empty one
  ScopeEntries found{.files = {}, .folders = {}, .url = url};
  for (const Json& item : items) {
    const std::string path = text_of(item, "Path", url);
    if (!root.empty() && !path.starts_with(root + "/"))
      refuse(url, "it names something outside the folder that it was asked for", path);
    if (text_of(item, "Type", url) == "tree") {
      found.folders.push_back(path);
      continue;
    }
    const bool digest = item.contains("Sha256") && item["Sha256"].is_string();
    found.files.emplace_back(HubFile{.path = path, .size = size_of(item, "Size", url), .sha256 = {}},
                             digest ? item["Sha256"].get<std::string>() : "");
  }
  return found;
}

// What lies below `root`; empty: all of the model.
ScopeEntries list_scope(const ModelSpec& spec, const std::string& root, bool recursive, const FetchOptions& options) {
  const std::string url =
      fmt::format("{}/api/v1/models/{}/repo/files?Revision={}&Recursive={}{}", spec.endpoint, spec.repo,
                  percent_encoded(spec.revision), recursive, root.empty() ? "" : "&Root=" + percent_encoded(root));
  return ask_scope(url, spec, root, options);
}

[[noreturn]] void refuse_cut_folder(const ScopeEntries& found, const ModelSpec& spec, const std::string& root) {
  throw Error(ErrorCode::CannotCheck,
              {.what = fmt::format("the hub lists {} entries of a folder and no more, so what lies there is not known",
                                   kModelScopeCut),
               .where = fmt::format("{}, {}", spec.repo, root.empty() ? "its top folder" : root + "/"),
               .expected = fmt::format("fewer than {} entries in each folder", kModelScopeCut),
               .got = found.url,
               .next = "fetch the repository with git, and give the folder as source"});
}

// ModelScope gives no commit; digests pin its files. A folder whose listing is cut is asked for folder by folder.
HubListing list_modelscope(const ModelSpec& spec, const FetchOptions& options) {
  HubListing listing;
  std::vector<std::string> waiting = {""};
  for (std::size_t requests = 0; !waiting.empty(); ++requests) {
    const std::string root = std::move(waiting.back());
    waiting.pop_back();
    ScopeEntries found = list_scope(spec, root, true, options);
    if (found.cut()) {
      found = list_scope(spec, root, false, options);
      if (found.cut()) refuse_cut_folder(found, spec, root);
      waiting.insert(waiting.end(), found.folders.begin(), found.folders.end());
    }
    if (requests + waiting.size() >= kMaxPages) refuse(found.url, "its folders do not end");
    for (auto& [file, digest] : found.files) add_file(listing, std::move(file), digest, found.url);
  }
  return listing;
}

// A data set's list has pages, and ends with the first one that is not full. A server that knows no pages would answer
// each with the same entries.
HubListing list_modelscope_data(const ModelSpec& spec, const FetchOptions& options) {
  HubListing listing;
  std::string first;  // of the page before
  for (std::size_t number = 1;; ++number) {
    const std::string url =
        fmt::format("{}/api/v1/datasets/{}/repo/tree?Revision={}&Recursive=True&PageNumber={}&PageSize={}",
                    spec.endpoint, spec.repo, percent_encoded(spec.revision), number, kScopePage);
    ScopeEntries found = ask_scope(url, spec, "", options);
    std::string top;
    if (!found.files.empty()) top = found.files[0].first.path;
    if (top.empty() && !found.folders.empty()) top = found.folders[0];
    if (!top.empty() && top == first) refuse(url, "it repeats the page before", top);
    if (number == kMaxPages) refuse(url, "its pages do not end");
    first = top;
    for (auto& [file, digest] : found.files) add_file(listing, std::move(file), digest, url);
    if (found.count() < kScopePage) return listing;
  }
}

HubListing listing_of(const ModelSpec& spec, const FetchOptions& options) {
  if (spec.hub == Hub::HfHub) return list_hf(spec, options);
  return spec.data ? list_modelscope_data(spec, options) : list_modelscope(spec, options);
}

}  // namespace

HubListing list_repository(const ModelSpec& spec, const FetchOptions& options) {
  HubListing listing = listing_of(spec, options);
  std::sort(listing.files.begin(), listing.files.end(),
            [](const HubFile& a, const HubFile& b) { return a.path < b.path; });
  const auto twin = std::adjacent_find(listing.files.begin(), listing.files.end(),
                                       [](const HubFile& a, const HubFile& b) { return a.path == b.path; });
  if (twin != listing.files.end()) refuse(spec.endpoint, "a file is listed twice in " + spec.repo, twin->path);
  return listing;
}

std::string url_of(const ModelSpec& spec, const std::string& commit, const std::string& path) {
  if (spec.hub == Hub::ModelScope)
    return fmt::format("{}/api/v1/{}/{}/repo?Revision={}&FilePath={}", spec.endpoint, spec.data ? "datasets" : "models",
                       spec.repo, percent_encoded(spec.revision), percent_encoded(path));
  return fmt::format("{}/{}{}/resolve/{}/{}", spec.endpoint,
                     spec.kernel ? "kernels/"
                     : spec.data ? "datasets/"
                                 : "",
                     spec.repo, commit, percent_encoded(path, "/"));
}

std::string token_for(const ModelSpec& spec) {
  const char* token = std::getenv("HF_TOKEN");
  if (spec.hub != Hub::HfHub || token == nullptr) return {};
  const std::optional<Url> url = parse_url(spec.endpoint);
  const bool safe = url && (url->scheme == "https" ||
                            (url->scheme == "http" && (url->host == "127.0.0.1" || url->host == "localhost")));
  return safe ? token : "";
}

std::string hub_hint(const ModelSpec& spec) {
  if (spec.hub != Hub::HfHub) return "check repo, revision and endpoint, and whether the repository is public";
  const char* token = std::getenv("HF_TOKEN");
  if (token == nullptr || *token == '\0')
    return "check repo, revision and endpoint; a repository that is private or gated needs HF_TOKEN in the environment";
  if (token_for(spec).empty())
    return "check repo, revision and endpoint; HF_TOKEN is not sent to this one, because it is not reached by https";
  return "check repo, revision and endpoint, and that HF_TOKEN may read the repository and its terms were accepted";
}

}  // namespace sealift::packager
