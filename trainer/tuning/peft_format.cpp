// SPDX-License-Identifier: Apache-2.0
#include "trainer/tuning/peft_format.hpp"

#include "trainer/models/weight_files.hpp"

#include <set>

namespace sealift::trainer {
namespace {

using safetensors::Json;
using Ordered = nlohmann::ordered_json;

constexpr const char* kConfig = "adapter_config.json";
constexpr const char* kFile = "adapter_model.safetensors";
constexpr const char* kBase = "sealift_base.json";  ///< beside them, of our own: which base it was trained over
constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kMagnitudeName = "lora_magnitude_vector";
constexpr const char* kEmbeddingWeight = "model.embed_tokens.weight";
constexpr const char* kHeadWeight = "lm_head.weight";

/// Keys that say nothing about the numbers of a LoRA, whatever their value.
const std::set<std::string> kInert{
    "base_model_name_or_path", "revision",          "inference_mode", "task_type", "peft_version", "auto_mapping",
    "megatron_core",           "qalora_group_size", "runtime_config"};

/// What can be done with an adapter that means something else here.
constexpr const char* kMerge =
    "merge the adapter into its base by PEFT's merge_and_unload() and go on from that model, or make it without this "
    "key";

/// PEFT's name of an adapter's parameter: without our module and, for magnitudes, without `.weight`.
std::string to_peft(const std::string& name, const std::vector<std::string>& modules_to_save) {
  if (is_saved_whole(name, modules_to_save)) return std::string(kPrefix) + name;
  if (!is_adapters(name)) return {};
  const auto at = name.rfind(".lora.lora_");
  auto rest = name.substr(at + std::strlen(".lora"));
  if (rest == "." + std::string(kMagnitudeName) + ".weight") rest = "." + std::string(kMagnitudeName);
  return std::string(kPrefix) + name.substr(0, at) + rest;
}

std::string from_peft(const std::string& stored, const std::vector<std::string>& modules_to_save) {
  if (stored.starts_with(kPrefix) && is_saved_whole(stored.substr(kPrefix.size()), modules_to_save)) {
    return stored.substr(kPrefix.size());
  }
  const auto at = stored.rfind(".lora_");
  auto rest = at == std::string::npos ? std::string() : stored.substr(at + 1);
  if (const auto name = rest.find(".default."); name != std::string::npos) rest.erase(name, std::strlen(".default"));
  const bool magnitude = rest == kMagnitudeName;
  TORCH_CHECK(
      stored.starts_with(kPrefix) && (rest == "lora_A.weight" || rest == "lora_B.weight" || magnitude), kFile, " has '",
      stored.substr(0, 200), "', no part of a LoRA of a decoder's projections, nor of its ",
      "modules_to_save; PEFT writes base_model.model.PATH.lora_A.weight: save the adapter by its save_pretrained(), ",
      "without other methods' parameters");
  return stored.substr(kPrefix.size(), at - kPrefix.size()) + ".lora." + rest + (magnitude ? ".weight" : "");
}

/// The keys of one config, each read once; what is left must be inert or say nothing.
class Keys {
 public:
  Keys(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    TORCH_CHECK(json_.is_object(), where_, " is no JSON object; expected PEFT's adapter_config.json");
  }

  const Json* find(const std::string& key) {
    known_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  double number(const std::string& key, double otherwise) {
    const auto* value = find(key);
    if (!value) return otherwise;
    if (!value->is_number()) refuse(key, "a number");
    return value->get<double>();
  }
  std::int64_t count(const std::string& key, std::int64_t otherwise) {
    const auto* value = find(key);
    if (!value) return otherwise;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() > 1'000'000) refuse(key, "a number up to 1000000");
    return value->get<std::int64_t>();
  }
  bool flag(const std::string& key) {
    const auto* value = find(key);
    if (value && !value->is_boolean()) refuse(key, "true or false");
    return value && value->get<bool>();
  }
  /// Refuses `key` unless it is absent, null or `expected`.
  void expect(const std::string& key, const Json& expected) {
    const auto* value = find(key);
    if (value && *value != expected) refuse(key, expected.dump() + "; " + kMerge);
  }
  /// Refuses every key that was not asked for, unless it is inert or switched off.
  void expect_nothing_else() {
    for (const auto& [key, value] : json_.items()) {
      const bool off = value.is_null() || value == false || ((value.is_object() || value.is_array()) && value.empty());
      if (known_.contains(key) || kInert.contains(key) || off) continue;
      TORCH_CHECK(false, where_, ": ", key.substr(0, 80), " is ", value.dump().substr(0, 80),
                  ", which may change the numbers and is not supported; ", kMerge);
    }
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& expected) const {
    TORCH_CHECK(false, where_, ": ", key, " is ", json_.at(key).dump().substr(0, 80), "; expected ", expected);
  }

 private:
  const Json& json_;
  std::string where_;
  std::set<std::string> known_;
};

/// Of any text but "all-linear", an expression that whole paths match, into `expression`.
std::vector<std::string> read_targets(Keys& keys, const std::string& where, std::string& expression) {
  const auto* value = keys.find("target_modules");
  TORCH_CHECK(value, where, " has no target_modules; expected names of projections");
  if (value->is_string()) {
    if (*value != "all-linear") expression = value->get<std::string>();
    return {"all-linear"};
  }
  if (!value->is_array() || value->empty()) keys.refuse("target_modules", "a list of names");
  std::vector<std::string> names;
  for (const auto& name : *value) {
    if (!name.is_string() || name.get_ref<const std::string&>().empty()) keys.refuse("target_modules", "names");
    names.push_back(name.get<std::string>());
  }
  return names;
}

/// Of initializations that leave the base as it is: an adapter that is read has its own values.
LoraInit read_init(Keys& keys) {
  const auto* value = keys.find("init_lora_weights");
  if (!value || value->is_boolean() || *value == "eva" || *value == "orthogonal") return LoraInit::Kaiming;
  if (*value != "gaussian") {
    keys.refuse("init_lora_weights", std::string("true or \"gaussian\", since others change the base; ") + kMerge);
  }
  return LoraInit::Gaussian;
}

/// The modules of a config's `key`, a list of names or nothing.
std::vector<std::string> read_modules(Keys& keys, const std::string& key) {
  const auto* value = keys.find(key);
  if (!value) return {};
  if (!value->is_array()) keys.refuse(key, "a list of names");
  std::vector<std::string> names;
  for (const auto& name : *value) {
    if (!name.is_string() || name.get_ref<const std::string&>().empty()) keys.refuse(key, "names");
    names.push_back(name.get<std::string>());
  }
  return names;
}

/// rank_pattern or alpha_pattern, in the order of the file, by which the first that matches counts.
template <typename Value>
std::vector<std::pair<std::string, Value>> read_pattern(Keys& keys, const std::string& key, const Ordered& ordered) {
  const auto* value = keys.find(key);
  std::vector<std::pair<std::string, Value>> pattern;
  if (!value) return pattern;
  if (!value->is_object()) keys.refuse(key, "numbers by names of modules");
  for (const auto& [name, number] : ordered.at(key).items()) {
    const bool is_rank = std::is_integral_v<Value>;
    const bool good = is_rank ? number.is_number_integer() && number >= 1 && number <= 1'000'000 : number.is_number();
    if (!good) keys.refuse(key, is_rank ? "ranks of at least 1" : "numbers");
    pattern.emplace_back(name, number.template get<Value>());
  }
  return pattern;
}

/// What of the config says something of single modules. `ordered`: the same keys as they stand in the file.
LoraPatterns read_patterns(Keys& keys, const Ordered& ordered, const LoraOptions& options) {
  LoraPatterns patterns{.ranks = read_pattern<std::int64_t>(keys, "rank_pattern", ordered),
                        .alphas = read_pattern<double>(keys, "alpha_pattern", ordered),
                        .excluded = {},
                        .excluded_regex = {},
                        .layers = {},
                        .layer_names = {}};
  const auto* excluded = keys.find("exclude_modules");
  if (excluded && excluded->is_string()) {
    patterns.excluded_regex = excluded->get<std::string>();
  } else {
    patterns.excluded = read_modules(keys, "exclude_modules");
  }
  const auto* layers = keys.find("layers_to_transform");
  const auto is_number = [](const Json& each) { return each.is_number_unsigned(); };
  if (layers && layers->is_array() && std::all_of(layers->begin(), layers->end(), is_number)) {
    patterns.layers = layers->get<std::vector<std::int64_t>>();
  } else if (layers && is_number(*layers)) {
    patterns.layers = {layers->get<std::int64_t>()};
  } else if (layers) {
    keys.refuse("layers_to_transform", "numbers of layers");
  }
  const auto* names = keys.find("layers_pattern");
  if (names && names->is_string()) {
    if (*names != "") patterns.layer_names = {names->get<std::string>()};
  } else {
    patterns.layer_names = read_modules(keys, "layers_pattern");
  }
  if (!patterns.layers.empty() && !options.target_regex.empty()) {
    keys.refuse("layers_to_transform", "none beside a target_modules that is an expression, as PEFT has it");
  }
  if (!patterns.layer_names.empty() && !layers) keys.refuse("layers_pattern", "a layers_to_transform beside it");
  return patterns;
}

/// The names that adapted projections end in, what PEFT stores for all-linear; their whole paths where the options
/// choose them otherwise.
std::vector<std::string> stored_targets(const torch::nn::Module& model, const LoraOptions& options) {
  if (!options.target_regex.empty() || options.patterns.choose_modules()) {
    std::vector<std::string> paths;
    for (const auto& [path, adapter] : find_adapters(model)) paths.push_back(path);
    return paths;
  }
  if (options.target_modules != std::vector<std::string>{"all-linear"}) return options.target_modules;
  std::set<std::string> names;
  for (const auto& [path, adapter] : find_adapters(model)) names.insert(path.substr(path.rfind('.') + 1));
  return {names.begin(), names.end()};
}

bool names_module(const std::vector<std::string>& modules, const std::string& module) {
  return std::find(modules.begin(), modules.end(), module) != modules.end();
}

/// Whether `options` train an embedding whole that is the head of `model` too.
bool trains_tied_head(const torch::nn::Module& model, const LoraOptions& options) {
  const auto parameters = model.named_parameters();
  const bool has_head = parameters.contains(kHeadWeight) || parameters.contains(std::string(kScore) + ".weight");
  return !has_head && parameters.contains(kEmbeddingWeight) &&
         is_saved_whole(kEmbeddingWeight, options.modules_to_save);
}

std::string config_of(const torch::nn::Module& model, const std::string& base) {
  const auto adapters = find_adapters(model);
  TORCH_CHECK(!adapters.empty(), "the model has no adapters; call add_lora() before parallelize()");
  const auto& options = adapters.begin()->second->options();
  auto whole = options.modules_to_save;
  const bool scores = names_module(whole, kScore), is_tied = trains_tied_head(model, options);
  // PEFT, of any version, then gives both the trained values; by embed_tokens alone its head stays the base's.
  if (is_tied && !names_module(whole, "lm_head")) whole.push_back("lm_head");
  Ordered ranks = Ordered::object(), alphas = ranks;
  for (const auto& [name, rank] : options.patterns.ranks) ranks[name] = rank;
  for (const auto& [name, alpha] : options.patterns.alphas) alphas[name] = alpha;
  const Ordered json = {
      {"peft_type", "LORA"},
      {"task_type", scores ? "SEQ_CLS" : "CAUSAL_LM"},
      {"base_model_name_or_path", base.empty() ? Ordered() : Ordered(base)},
      {"inference_mode", true},
      {"r", options.rank},
      {"lora_alpha", options.alpha},
      {"lora_dropout", options.dropout},
      {"target_modules", stored_targets(model, options)},
      {"use_rslora", options.rank_stabilized},
      {"use_dora", options.dora},
      {"init_lora_weights", options.init == LoraInit::Gaussian ? Ordered("gaussian") : Ordered(true)},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"modules_to_save", whole.empty() ? Ordered() : Ordered(whole)},
      {"rank_pattern", ranks},
      {"alpha_pattern", alphas},
      {"ensure_weight_tying", is_tied},
  };
  return json.dump(2) + "\n";
}

}  // namespace

void save_adapter(const std::filesystem::path& folder, const torch::nn::Module& model, train::Parallel& parallel,
                  const std::string& base) {
  auto& world = parallel.groups().world;
  const auto text = config_of(model, base);
  const auto on_rank_0 = [&](const auto& work) {
    train::detail::all_saved(world, "saving the adapter to " + folder.string(), [&]() -> std::string {
      if (world.rank() == 0) work();
      return "";
    });
  };
  on_rank_0([&] { std::filesystem::create_directories(folder); });
  const auto& options = find_adapters(model).begin()->second->options();
  const auto& whole = options.modules_to_save;
  train::ExportOptions how{.name = [&](const std::string& name) { return to_peft(name, whole); }};
  if (trains_tied_head(model, options)) {
    how.second_names[std::string(kPrefix) + kEmbeddingWeight] = std::string(kPrefix) + kHeadWeight;
  }
  train::export_safetensors(folder / kFile, model, parallel, how);
  const auto write = [&](const char* name, const std::string& content) {
    train::OutputFile file(folder / name);
    file.write(content.data(), content.size());
    file.commit();
  };
  on_rank_0([&] {
    const auto digest = base.empty() ? std::string() : weights_digest(base);
    if (!digest.empty()) write(kBase, Json({{"base", base}, {"weights_sha256", digest}}).dump(2) + "\n");
    write(kConfig, text);
  });
}

void check_base(const std::filesystem::path& folder, const std::filesystem::path& model) {
  const auto path = folder / kBase;
  if (!std::filesystem::exists(path)) return;
  const auto json = safetensors::parse_json(train::read_text(path, std::uint64_t{1} << 20), 4, path.string());
  if (!json.is_object() || !json.contains("weights_sha256") || !json["weights_sha256"].is_string()) return;
  const auto then = json["weights_sha256"].get<std::string>(), now = weights_digest(model);
  TORCH_CHECK(then == now, folder.string(), " was trained over ", json.value("base", std::string("another base")),
              ", whose weights are ", then.substr(0, 16), "; those of ", model.string(), " are ", now.substr(0, 16),
              "; give the base that it was trained over, or remove ", path.string(), " if it is meant for this one");
}

LoraOptions parse_adapter_config(std::string_view text, const std::string& where) {
  const auto json = safetensors::parse_json(text, 8, where);
  Keys keys(json, where);
  TORCH_CHECK(keys.find("peft_type"), where, " has no peft_type; expected PEFT's adapter_config.json");
  keys.expect("peft_type", "LORA");
  keys.expect("bias", "none");
  LoraOptions options;
  options.rank = keys.count("r", options.rank);
  options.alpha = keys.number("lora_alpha", options.alpha);
  options.dropout = keys.number("lora_dropout", options.dropout);
  options.target_modules = read_targets(keys, where, options.target_regex);
  options.may_name_others = true;
  options.rank_stabilized = keys.flag("use_rslora");
  options.dora = keys.flag("use_dora");
  options.init = read_init(keys);
  options.modules_to_save = read_modules(keys, "modules_to_save");
  options.ties_head = keys.flag("ensure_weight_tying");
  options.patterns = read_patterns(keys, Ordered::parse(text), options);
  keys.expect_nothing_else();
  check(options);
  return options;
}

LoraOptions read_adapter_config(const std::filesystem::path& folder) {
  const auto path = folder / kConfig;
  return parse_adapter_config(train::read_text(path, std::uint64_t{16} << 20), path.string());
}

/// Throws unless the adapter in `file`, of a model whose head is its embedding, has one value for both.
void check_tied_head(const std::filesystem::path& file, const LoraOptions& options) {
  std::vector<train::WantedTensor> wanted;
  for (const auto& tensor : train::read_header(train::InputFile(file)).tensors) {
    if (tensor.name != std::string(kPrefix) + kEmbeddingWeight && tensor.name != std::string(kPrefix) + kHeadWeight)
      continue;
    wanted.push_back({.name = tensor.name,
                      .sizes = {tensor.shape.begin(), tensor.shape.end()},
                      .dtype = train::scalar_type(tensor.dtype, tensor.name)});
  }
  const auto* remedy = "; the model's head is its embedding, so train them as one (PEFT: ensure_weight_tying = true)";
  if (wanted.size() < 2) {
    TORCH_CHECK(options.ties_head, file.string(), " has embed_tokens and no lm_head, so PEFT takes the base's head",
                remedy);
    return;
  }
  bool equal = wanted[0].sizes == wanted[1].sizes;
  const auto wants = [&](const std::string& stored) {
    return stored == wanted[0].name || stored == wanted[1].name ? stored : std::string();
  };
  train::SafetensorsSource source(file, {.name = wants});
  source.check(wanted);
  const auto numel = c10::multiply_integers(wanted[0].sizes);
  constexpr std::int64_t kPiece = train::kPieceBytes / 4;
  for (std::int64_t first = 0; equal && first < numel; first += kPiece) {
    const auto piece = [&](const train::WantedTensor& tensor) {
      auto values = torch::empty({std::min(kPiece, numel - first)}, tensor.dtype);
      source.read(tensor.name, tensor.sizes, first, values);
      return values;
    };
    equal = piece(wanted[0]).equal(piece(wanted[1]).to(wanted[0].dtype));
  }
  TORCH_CHECK(equal, file.string(), " has an lm_head that is not its embed_tokens", remedy);
}

namespace {

/// The base behind an adapter's file: what is missing of the adapter is the file's fault and not the base's.
class BehindAdapter final : public train::Source {
 public:
  BehindAdapter(train::Source& base, std::string file) : base_(base), file_(std::move(file)) {}

  void check(const std::vector<train::WantedTensor>& wanted) override {
    auto of_base = wanted;
    for (const auto& tensor : wanted) {
      TORCH_CHECK(!is_adapters(tensor.name) || !tensor.required, file_, " has no ", to_peft(tensor.name, {}),
                  ", which the adapter that its adapter_config.json describes has over this model; save the adapter ",
                  "again, or copy the whole file");
    }
    std::erase_if(of_base, [](const auto& tensor) { return is_adapters(tensor.name); });
    base_.check(of_base);
  }
  bool has(const std::string& name) const override { return base_.has(name); }
  void read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin, at::Tensor out) override {
    base_.read(name, sizes, begin, std::move(out));
  }

 private:
  train::Source& base_;
  std::string file_;
};

/// An adapter's file, and the base behind it.
class AdapterSource final : public train::Source {
 public:
  AdapterSource(const std::filesystem::path& file, train::Source& base,
                std::function<std::string(const std::string&)> name)
      : path_(file),
        name_(name),
        behind_(base, file.string()),
        file_(file, {.name = std::move(name), .otherwise = &behind_}) {}

  void check(const std::vector<train::WantedTensor>& wanted) override {
    std::map<std::string, const train::WantedTensor*> by_name;
    for (const auto& tensor : wanted) by_name.emplace(tensor.name, &tensor);
    for (const auto& tensor : train::read_header(train::InputFile(path_)).tensors) {
      const auto name = name_(tensor.name);
      if (!name.empty()) check_place(tensor, by_name.contains(name) ? by_name.at(name) : nullptr);
    }
    file_.check(wanted);
  }
  bool has(const std::string& name) const override { return file_.has(name); }
  void read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin, at::Tensor out) override {
    file_.read(name, sizes, begin, std::move(out));
  }

 private:
  /// Throws unless the model has `place` for it, of its shape.
  void check_place(const safetensors::Tensor& tensor, const train::WantedTensor* place) const {
    const auto* remedy = "; give the base that it was made for, or save the adapter and its config again";
    TORCH_CHECK(place, path_.string(), " has ", tensor.name.substr(0, 200), ", for which this model has no adapter by ",
                kConfig, remedy);
    const std::vector<std::int64_t> sizes(tensor.shape.begin(), tensor.shape.end());
    TORCH_CHECK(sizes == place->sizes, path_.string(), ": ", tensor.name.substr(0, 200), " is ", at::IntArrayRef(sizes),
                "; by ", kConfig, " and this model it is ", at::IntArrayRef(place->sizes), remedy);
  }

  std::filesystem::path path_;
  std::function<std::string(const std::string&)> name_;
  BehindAdapter behind_;
  train::SafetensorsSource file_;
};

}  // namespace

std::unique_ptr<train::Source> adapter_source(const std::filesystem::path& folder, train::Source& base,
                                              const LoraOptions& options, bool tied_head) {
  TORCH_CHECK(std::filesystem::exists(folder / kFile), folder.string(), " has no ", kFile,
              ", so it is half an adapter; save it again as safetensors, or copy all of it");
  const bool is_tied = tied_head && is_saved_whole(kEmbeddingWeight, options.modules_to_save);
  if (is_tied) check_tied_head(folder / kFile, options);
  auto missing = options.modules_to_save;  // the base has these too, which is not what was trained
  for (const auto& tensor : train::read_header(train::InputFile(folder / kFile)).tensors) {
    std::erase_if(missing, [&](const auto& module) { return is_saved_whole(tensor.name, {module}); });
  }
  TORCH_CHECK(missing.empty(), (folder / kFile).string(), " has no ", missing.front(),
              ", which adapter_config.json names in modules_to_save; save the adapter again");
  const auto name = [whole = options.modules_to_save, is_tied](const std::string& stored) {
    return is_tied && stored == std::string(kPrefix) + kHeadWeight ? std::string() : from_peft(stored, whole);
  };
  return std::make_unique<AdapterSource>(folder / kFile, base, name);
}

}  // namespace sealift::trainer
