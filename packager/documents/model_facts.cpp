// SPDX-License-Identifier: Apache-2.0
// Catalogue -> repositories -> their files; what is left -> folders. See model_facts.hpp.
#include "packager/documents/model_facts.hpp"

#include <algorithm>
#include <array>

#include "bundle/core/unicode.hpp"
#include "packager/documents/wheel_facts.hpp"
#include "packager/host/url.hpp"
#include "packager/models/model_files.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxReadme = std::uint64_t{1} << 20;
constexpr std::size_t kMaxLeftOutModel = 20;
constexpr std::size_t kFiles = 6;  // "files/"
constexpr std::array<std::string_view, 4> kModelConfigs = {"config.json", "adapter_config.json", "model_index.json",
                                                           "modules.json"};

std::string text_of_entry(const bundle::VerifiedBundle& source, const bundle::Entry& entry) {
  std::string text;
  source.stream(entry, [&text](bundle::ByteView piece) { text += bundle::as_text(piece); });
  return text;
}

// The catalogue's text: the bundle's, or the lock's where the bundle leaves its own out.
std::string catalogue_text(const bundle::VerifiedBundle& source, const std::optional<Lock>& lock) {
  const bundle::Entry* entry =
      source.manifest().find(bundle::SafePath::parse(std::string(bundle::kHubCatalogueEntry), "catalogue"));
  if (entry == nullptr || entry->kind != bundle::EntryKind::File || entry->size > bundle::kMaxHubCatalogue) return {};
  if (!entry->absent) return text_of_entry(source, *entry);
  const std::optional<Content> same = lock ? hub_catalogue_of(lock->models) : std::nullopt;
  return same && same->sha256 == entry->sha256 ? std::get<FromText>(same->origin).text : std::string();
}

// "files/hub/models--org--name/snapshots/COMMIT/" or "files/modelscope/models/org--name/snapshots/BRANCH/", where the
// cache of the hub's client has it.
std::string snapshot_of(const bundle::HubRepository& repository) {
  std::string id = repository.name.id;
  if (const std::size_t slash = id.find('/'); slash != id.npos) id.replace(slash, 1, "--");
  const std::string kind = repository.name.kind == bundle::RepositoryKind::Dataset ? "datasets" : "models";
  const bool hf = repository.name.hub == bundle::HubKind::HuggingFace;
  return "files/" + (hf ? "hub/" + kind + "--" : "modelscope/" + kind + "/") + id + "/snapshots/" + repository.commit +
         "/";
}

BundledModel model_of(const bundle::HubRepository& repository, const std::set<std::string>& entries) {
  BundledModel model{.hub = repository.name,
                     .data = repository.name.kind == bundle::RepositoryKind::Dataset,
                     .name = repository.name.id,
                     .commit = repository.commit,
                     .files = {}};
  const std::string snapshot = snapshot_of(repository);
  for (const bundle::HubRepositoryFile& file : repository.files) {
    model.files.emplace(file.path.text(), file.entry.text());
    const std::string twin = snapshot + file.path.text();
    if (twin != file.entry.text() && entries.contains(twin)) model.twins.push_back(twin);
  }
  return model;
}

bool is_model_config(std::string_view name) {
  return name.ends_with(".gguf") || std::find(kModelConfigs.begin(), kModelConfigs.end(), name) != kModelConfigs.end();
}

// The folder that is the model of the file `path`: the outermost one with a configuration, which each model has at its
// top; else the first below files/models/ or files/data/.
std::string root_of(const std::string& path, const std::set<std::string>& configured) {
  const std::size_t start = path.find('/', kFiles) + 1;  // behind "files/models/"
  std::size_t first = path.npos;
  for (std::size_t slash = path.find('/', start); slash != path.npos; slash = path.find('/', slash + 1)) {
    if (first == path.npos) first = slash;
    if (configured.contains(path.substr(0, slash))) return path.substr(0, slash);
  }
  return path.substr(0, first);
}

// Files of models and data that no repository has, by folder.
void add_folders(const std::set<std::string>& loose, std::vector<BundledModel>& models) {
  std::set<std::string> configured;
  for (const std::string& path : loose)
    if (const std::size_t slash = path.rfind('/'); is_model_config(path.substr(slash + 1)))
      configured.insert(path.substr(0, slash));
  std::map<std::string, BundledModel> folders;
  for (const std::string& path : loose) {
    const std::string root = root_of(path, configured);
    if (root.size() >= path.size()) continue;  // a file that lies in no folder of its own
    BundledModel& model = folders[root];
    model.data = path.starts_with("files/data/");
    model.name = root.substr(root.find('/', kFiles) + 1);
    model.files.emplace(path.substr(root.size() + 1), path);
  }
  for (auto& [root, model] : folders) models.push_back(std::move(model));
}

bool states_licence(std::string_view path) {
  if (path.find('/') != path.npos) return false;
  const std::string name = bundle::case_folded(path);
  for (const char* start : {"license", "licence", "copying", "notice", "use_policy"})
    if (name.starts_with(start)) return true;
  return false;
}

class LicenceReader {
 public:
  LicenceReader(const bundle::VerifiedBundle& source, fs::path licences)
      : source_(source), licences_(std::move(licences)) {}

  void read(BundledModel& model, PlainNames& folders) const {
    read_card(model);
    PlainNames names;
    std::uint64_t bytes = 0;
    for (const auto& [path, place] : model.files) {
      if (!states_licence(path)) continue;
      const char* why = fault_of(place, model, bytes);
      if (why != nullptr) {
        if (model.licences.left_out.size() < kMaxLeftOutModel)
          model.licences.left_out.push_back(shown(path) + ": " + why);
        continue;
      }
      if (model.folder.empty())
        model.folder = folders.take(model.name + (model.commit.empty() ? "" : "-" + model.commit.substr(0, 12)));
      const std::string text = text_of_entry(source_, entry_of(place));
      bytes += text.size();
      fs::create_directories(licences_ / model.folder);
      model.licences.files.push_back(names.take(path, ".txt"));
      bundle::write_text(licences_ / model.folder / model.licences.files.back(), text);
    }
  }

 private:
  const bundle::Entry& entry_of(const std::string& place) const {
    return *source_.manifest().find(bundle::SafePath::parse(place, "documents"));
  }
  void read_card(BundledModel& model) const {
    const auto readme = model.files.find("README.md");
    if (readme == model.files.end()) return;
    const bundle::Entry& entry = entry_of(readme->second);
    model.licence_known = !entry.absent;
    if (!entry.absent && entry.size <= kMaxReadme) model.stated = read_card_licence(text_of_entry(source_, entry));
  }
  const char* fault_of(const std::string& place, const BundledModel& model, std::uint64_t bytes) const {
    const bundle::Entry& entry = entry_of(place);
    if (entry.absent) return "not carried";
    if (entry.size > kMaxLicenceFile || entry.size > kMaxLicenceBytes - bytes) return "too large";
    return model.licences.files.size() == kMaxLicenceFiles ? "too many files" : nullptr;
  }

  const bundle::VerifiedBundle& source_;
  fs::path licences_;
};

}  // namespace

std::string BundledModel::purl() const {
  if (!hub) return {};
  std::string out = hub->hub == bundle::HubKind::HuggingFace ? "pkg:huggingface/" : "pkg:modelscope/";
  if (data) out += "datasets/";
  return out + name + "@" + percent_encoded(commit);  // an id has nothing to encode
}

std::string BundledModel::ref() const {
  return hub ? purl() : (data ? "folder:data/" : "folder:models/") + name;
}

std::vector<BundledModel> read_bundled_models(const bundle::VerifiedBundle& source, const std::optional<Lock>& lock,
                                              const fs::path& licences, PlainNames& folders) {
  std::set<std::string> entries, loose;
  for (const bundle::Entry& entry : source.manifest().entries) {
    const std::string& path = entry.path.text();
    entries.insert(path);
    if (path.starts_with("files/models/") || path.starts_with("files/data/")) loose.insert(path);
  }
  std::vector<BundledModel> models;
  if (const std::string text = catalogue_text(source, lock); !text.empty())
    for (const bundle::HubRepository& repository :
         parse_hub_catalogue(text, source.manifest(), source.manifest().stem() + ":" + "catalogue of hubs"))
      models.push_back(model_of(repository, entries));
  for (const BundledModel& model : models)
    for (const auto& [path, place] : model.files) loose.erase(place);
  add_folders(loose, models);
  const LicenceReader reader(source, licences);
  for (BundledModel& model : models) reader.read(model, folders);
  return models;
}

}  // namespace sealift::packager
