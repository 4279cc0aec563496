// SPDX-License-Identifier: Apache-2.0
// TOML <-> models; see model_toml.hpp. The project names no hub's host, so the job or the environment gives the
// endpoint.
#include "packager/tables/model_toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "bundle/core/unicode.hpp"
#include "packager/host/url.hpp"
#include "sealift/bundle/core/own_places.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;

namespace {

constexpr std::pair<Hub, std::string_view> kHubs[] = {
    {Hub::Folder, "folder"}, {Hub::HfHub, "hf"}, {Hub::ModelScope, "modelscope"}};
constexpr std::pair<ModelLayout, std::string_view> kLayouts[] = {{ModelLayout::Folder, "folder"},
                                                                 {ModelLayout::HfCache, "hf-cache"},
                                                                 {ModelLayout::ModelScopeCache, "modelscope-cache"},
                                                                 {ModelLayout::Both, "both"},
                                                                 {ModelLayout::Tree, "tree"}};

template <class Enum, std::size_t N>
std::string word_of(const std::pair<Enum, std::string_view> (&words)[N], Enum value) {
  for (const auto& [candidate, word] : words)
    if (candidate == value) return std::string(word);
  return {};
}

template <class Enum, std::size_t N>
Enum read_word(TomlTable& table, const std::string& key, const std::pair<Enum, std::string_view> (&words)[N],
               Enum otherwise) {
  const std::string text = table.string_or(key, word_of(words, otherwise));
  for (const auto& [value, word] : words)
    if (word == text) return value;
  table.refuse(key, "a value is not one of the known ones",
               key == "hub" ? "hf or modelscope" : "folder, hf-cache, modelscope-cache, both or tree", text);
}

// The characters that the hubs allow, none of which needs quoting in a URL or a path.
bool is_name_of_hub(std::string_view text, std::size_t max_parts) {
  std::size_t parts = 0;
  for (std::size_t begin = 0; begin <= text.size(); ++parts) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const bool plain = std::all_of(part.begin(), part.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
             c == '.';
    });
    if (part.empty() || part.size() > 96 || part.front() == '.' || !plain) return false;
    begin = end + 1;
  }
  return parts <= max_parts;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// As its client reads them: MODELSCOPE_ENDPOINT, else the older MODELSCOPE_DOMAIN; either may lack the scheme.
std::string modelscope_endpoint() {
  std::string endpoint = environment("MODELSCOPE_ENDPOINT");
  if (endpoint.empty()) endpoint = environment("MODELSCOPE_DOMAIN");
  return endpoint.empty() || endpoint.find("://") != endpoint.npos ? endpoint : "https://" + endpoint;
}

std::string read_endpoint(TomlTable& table, Hub hub) {
  std::string endpoint = table.string_or("endpoint", "");
  if (endpoint.empty() && hub == Hub::HfHub) endpoint = environment("HF_ENDPOINT");
  if (endpoint.empty() && hub == Hub::ModelScope) endpoint = modelscope_endpoint();
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const char* variable = hub == Hub::HfHub ? "HF_ENDPOINT" : "MODELSCOPE_ENDPOINT";
  if (endpoint.empty())
    table.refuse("endpoint", "nothing says which hub this model comes from",
                 fmt::format("endpoint = \"https://HOST\" here, or {} in the environment", variable), {},
                 "no host is built in, so that a bundle comes only from a place that somebody chose");
  const std::optional<Url> url = parse_url(endpoint);
  if (!url || (url->scheme != "https" && url->scheme != "http") || url->host.empty() || url->has_credentials ||
      url->has_query || url->has_fragment)
    table.refuse("endpoint", "this is not the address of a hub", "like https://HOST, without name or password",
                 without_credentials(endpoint));
  return endpoint;
}

// All but which hub it is.
void read_names(TomlTable& table, ModelSpec& spec) {
  table.attempt([&] {
    spec.repo = table.string("repo");
    if (!is_name_of_hub(spec.repo, 2))
      table.refuse("repo", "this is not the name of a repository", "like \"org/name\"", spec.repo);
  });
  table.attempt([&] {
    spec.revision = table.string_or("revision", spec.hub == Hub::HfHub ? "main" : "master");
    if (!is_name_of_hub(spec.revision, 8))
      table.refuse("revision", "this is not a branch, tag or commit", "like \"main\"", spec.revision);
  });
  table.attempt([&] { spec.endpoint = read_endpoint(table, spec.hub); });
}

void read_hub_source(TomlTable& table, ModelSpec& spec) {
  spec.hub = read_word(table, "hub", kHubs, Hub::HfHub);
  if (spec.hub == Hub::Folder)
    table.refuse("hub", "a folder is not a hub", "source = \"FOLDER\" instead of repo", "folder");
  read_names(table, spec);
}

void read_source(TomlTable& table, const fs::path& folder, ModelSpec& spec) {
  if (table.has("source") == table.has("repo"))
    table.refuse(table.has("repo") ? "repo" : "source", "a model comes from one place",
                 "either source = \"FOLDER\" or repo = \"org/name\"");
  if (table.has("repo")) return read_hub_source(table, spec);
  spec.folder = fs::absolute(folder / table.string("source")).lexically_normal();
  if (spec.folder.filename().empty()) spec.folder = spec.folder.parent_path();
  if (!fs::is_directory(spec.folder))
    table.refuse("source", "the folder is not there", "a folder", spec.folder.string(),
                 "correct the path; it is relative to the job file");
  for (const char* key : {"hub", "endpoint", "revision"})
    if (table.has(key)) table.refuse(key, "this is for a repository on a hub", "repo = \"org/name\"");
}

// Not among what Sealift reads itself, or root's apt and dnf: a model's author chooses what its files are called.
std::string safe_folder(TomlTable& table, const std::string& text) {
  const bundle::OwnPlace* const own = bundle::own_place_of(text);
  if (own != nullptr && own->entry != "*")
    table.refuse("into", "models and data have no place there: it is for " + std::string(own->use),
                 "a folder such as models/NAME or data/NAME", text);
  try {
    return bundle::SafePath::parse(text, "into").text();
  } catch (const Error& error) {
    table.refuse("into", error.facts().what, error.facts().expected, error.facts().got);
  }
}

bool is_of_hub(ModelLayout layout, Hub hub) {
  if (layout == ModelLayout::HfCache) return hub == Hub::HfHub;
  if (layout == ModelLayout::ModelScopeCache) return hub == Hub::ModelScope;
  return layout != ModelLayout::Both || hub != Hub::Folder;
}

// ModelScope's cache has a folder for a revision, so what it holds could not be told from a branch of several parts.
void check_layout(const TomlTable& table, const ModelSpec& spec) {
  if (spec.layout == ModelLayout::Tree && spec.hub != Hub::Folder)
    table.refuse("layout", "only a folder is carried as one archive", "source = \"FOLDER\" instead of repo", "tree",
                 "fetch the repository with its own client and give the folder as source");
  if (!is_of_hub(spec.layout, spec.hub))
    table.refuse("layout", "only a repository of that hub has a name for its cache",
                 spec.hub == Hub::Folder  ? "folder or tree"
                 : spec.hub == Hub::HfHub ? "folder, hf-cache or both"
                                          : "folder, modelscope-cache or both",
                 word_of(kLayouts, spec.layout));
  if (spec.hub == Hub::ModelScope && spec.layout != ModelLayout::Folder && spec.revision.find('/') != std::string::npos)
    table.refuse("revision", "a revision with '/' has no place in ModelScope's cache", "layout = \"folder\"",
                 spec.revision);
}

JobModel read_job_model(TomlTable& table, const fs::path& folder, bool data) {
  JobModel model;
  ModelSpec& spec = model.spec;
  spec.data = data;
  for (const char* key : {"hub", "repo", "revision", "endpoint", "source"}) table.ignore(key);  // one of two ways
  table.attempt([&] { read_source(table, folder, spec); });
  table.attempt([&] {
    if (table.has("into")) spec.into = safe_folder(table, table.string("into"));
  });
  table.attempt([&] { spec.layout = read_word(table, "layout", kLayouts, ModelLayout::Folder); });
  table.attempt([&] { spec.allow_pickle = table.boolean_or("allow_pickle", false); });
  table.attempt([&] { model.include = table.strings("include"); });
  table.attempt([&] { model.exclude = table.strings("exclude"); });
  table.done();
  if (spec.into.empty())
    spec.into = safe_folder(table, (data ? "data/" : "models/") + fs::path(spec.title()).filename().string());
  check_layout(table, spec);
  return model;
}

Digest read_sha256(TomlTable& table) {
  const std::string text = table.string("sha256");
  const std::optional<Digest> digest = Digest::from_hex(text);
  if (!digest) table.refuse("sha256", "this is not a SHA-256", "64 lower-case hexadecimal digits", text);
  return *digest;
}

LockedFile read_file(TomlTable& table) {
  LockedFile file{.path = table.string("path"), .size = table.integer("size"), .sha256 = read_sha256(table)};
  bundle::SafePath::parse(file.path, "lock");
  file.spelled = table.string_or("spelled", "");
  if (!file.spelled.empty() && bundle::composed(file.spelled) != file.path)
    table.refuse("spelled", "this is not the path in another form of Unicode", file.path, file.spelled);
  table.done();
  return file;
}

LockedTree read_tree(TomlTable table) {
  const LockedTree tree{.size = table.integer("size"), .sha256 = read_sha256(table), .files = table.integer("files")};
  table.done();
  return tree;
}

LockedModel read_locked_model(TomlTable& table, const fs::path& folder) {
  LockedModel model;
  ModelSpec& spec = model.spec;
  spec.data = table.boolean_or("data", false);
  spec.hub = read_word(table, "hub", kHubs, Hub::Folder);
  if (spec.hub == Hub::Folder) {
    spec.folder = (folder / table.string("source")).lexically_normal();
  } else {
    spec.repo = table.string("repo");
    spec.revision = table.string("revision");
    if (!is_name_of_hub(spec.repo, 2)) table.refuse("repo", "this is not the name of a repository", {}, spec.repo);
    if (!is_name_of_hub(spec.revision, 8)) table.refuse("revision", "this is not a revision", {}, spec.revision);
    spec.endpoint = read_endpoint(table, spec.hub);
    model.commit = table.string_or("commit", "");
    if (model.commit.size() != 40 && spec.hub == Hub::HfHub)
      table.refuse("commit", "this is not a commit", "40 hexadecimal digits", model.commit);
    if (!model.commit.empty() && !is_name_of_hub(model.commit, 1)) table.refuse("commit", "this is not a commit");
  }
  spec.into = safe_folder(table, table.string("into"));
  spec.layout = read_word(table, "layout", kLayouts, ModelLayout::Folder);
  spec.allow_pickle = table.boolean_or("allow_pickle", false);
  check_layout(table, spec);
  if (spec.layout == ModelLayout::Tree) model.tree = read_tree(table.table("tree"));
  model.files = read_locked_files(table);
  table.done();
  return model;
}

}  // namespace

std::vector<JobModel> read_job_models(TomlTable& job, const fs::path& folder) {
  std::vector<JobModel> models;
  std::map<std::string, std::string> places;
  Refusals faults;
  for (const char* kind : {"model", "data"})
    faults.ask([&] {
      job.each(kind, [&](TomlTable& table) {
        models.push_back(read_job_model(table, folder, std::string_view(kind) == "data"));
        const std::string& into = models.back().spec.into;
        if (const auto [twin, fresh] = places.emplace(bundle::case_folded(into), into); !fresh)
          table.refuse("into", "two models have the same folder", "a folder of its own", into,
                       "choose another folder: into = \"models/NAME\"");
      });
    });
  faults.refuse("models or data are not right", "correct each of them");
  return models;
}

std::vector<LockedModel> read_locked_models(TomlTable& lock, const fs::path& folder) {
  std::vector<LockedModel> models;
  for (TomlTable& table : lock.tables("model")) models.push_back(read_locked_model(table, folder));
  return models;
}

std::string write_locked_models(const std::vector<LockedModel>& models, const fs::path& folder) {
  std::string out;
  for (const LockedModel& model : models) {
    const ModelSpec& spec = model.spec;
    out += fmt::format("\n[[model]]\ndata = {}\nhub = {}\n", spec.data, toml_quoted(word_of(kHubs, spec.hub)));
    if (spec.hub == Hub::Folder)
      out += fmt::format("source = {}\n", toml_quoted(spec.folder.lexically_relative(folder).string()));
    else
      out += fmt::format("endpoint = {}\nrepo = {}\nrevision = {}\n", toml_quoted(spec.endpoint),
                         toml_quoted(spec.repo), toml_quoted(spec.revision));
    if (!model.commit.empty()) out += fmt::format("commit = {}\n", toml_quoted(model.commit));
    out += fmt::format("into = {}\nlayout = {}\nallow_pickle = {}\n", toml_quoted(spec.into),
                       toml_quoted(word_of(kLayouts, spec.layout)), spec.allow_pickle);
    if (model.tree) {
      out += fmt::format("tree = {{ size = {}, sha256 = {}, files = {} }}\n", model.tree->size,
                         toml_quoted(model.tree->sha256.hex()), model.tree->files);
      continue;
    }
    out += write_locked_files(model.files);
  }
  return out;
}

void read_repository(TomlTable& table, ModelSpec& spec) {
  spec.hub = Hub::HfHub;
  read_names(table, spec);
}

std::vector<LockedFile> read_locked_files(TomlTable& table) {
  std::vector<LockedFile> files;
  for (TomlTable& file : table.tables("files")) files.push_back(read_file(file));
  const auto by_path = [](const LockedFile& a, const LockedFile& b) { return a.path < b.path; };
  std::sort(files.begin(), files.end(), by_path);
  return files;
}

std::string write_locked_files(const std::vector<LockedFile>& files) {
  std::string out = "files = [\n";
  for (const LockedFile& file : files)
    out += fmt::format("  {{ path = {}, size = {}, sha256 = {}{} }},\n", toml_quoted(file.path), file.size,
                       toml_quoted(file.sha256.hex()),
                       file.spelled.empty() ? "" : ", spelled = " + toml_quoted(file.spelled));
  return out + "]\n";
}

}  // namespace sealift::packager
