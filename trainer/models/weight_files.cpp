// SPDX-License-Identifier: Apache-2.0
// See weight_files.hpp.
#include "trainer/models/weight_files.hpp"

#include <sealift/saved_wrapper.hpp>
#include <sealift/train.hpp>

#include <set>

namespace sealift::trainer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

/// The files that model.safetensors.index.json names.
std::vector<fs::path> files_of_index(const fs::path& index) {
  const auto json = safetensors::parse_json(train::read_text(index, std::uint64_t{256} << 20), 8, index.string());
  std::set<std::string> names;
  if (json.is_object() && json.contains("weight_map") && json["weight_map"].is_object()) {
    for (const auto& [tensor, file] : json["weight_map"].items()) {
      if (file.is_string()) names.insert(file.get<std::string>());
    }
  }
  std::vector<fs::path> files;
  for (const auto& name : names) {
    if (name.empty() || name.find('/') != std::string::npos) continue;  // refused where it is read
    files.push_back(index.parent_path() / name);
    TORCH_CHECK(fs::exists(files.back()), index.string(), " names ", name,
                ", which is not in the folder; take all files of the model from one place");
  }
  return files;
}

/// Files that look like weights in a folder that has none which are read, for a message.
std::string other_weights(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto end = entry.path().extension();
    for (const char* each : {".bin", ".safetensors", ".pt", ".pth", ".gguf", ".h5", ".msgpack"}) {
      if (end == each) names.insert(entry.path().filename().string());
    }
  }
  if (names.empty()) return "it has none under other names either";
  const auto all = names.size();
  while (names.size() > 5) names.erase(std::prev(names.end()));
  return "it has " + c10::Join(", ", std::vector<std::string>(names.begin(), names.end())) +
         (all > names.size() ? " and more" : "");
}

std::vector<fs::path> files_of(const fs::path& folder) {
  const auto weights = weights_of(folder);
  if (weights != folder) return {weights};
  const auto index = folder / "model.safetensors.index.json";
  return fs::exists(index) ? files_of_index(index) : std::vector<fs::path>();
}

}  // namespace

fs::path weights_of(const fs::path& folder) {
  const auto single = folder / "model.safetensors";
  return fs::exists(single) ? single : folder;
}

std::map<std::string, std::vector<std::int64_t>> stored_shapes(const fs::path& folder) {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const auto& file : files_of(folder)) {
    for (const auto& tensor : train::read_header(train::InputFile(file)).tensors) {
      shapes[tensor.name] = {tensor.shape.begin(), tensor.shape.end()};
    }
  }
  return shapes;
}

void check_weights(const fs::path& folder, const DecoderConfig& config) {
  const auto shapes = stored_shapes(folder);
  TORCH_CHECK(!shapes.empty() || weights_of(folder) != folder, folder.string(), " has no weights that can be read, ",
              "model.safetensors or what model.safetensors.index.json names; ", other_weights(folder),
              "; open the model with transformers and write it by save_pretrained(), which makes them");
  if (shapes.empty()) return;  // refused where it is read
  if (const auto wrapper = saved_wrapper(shapes)) {
    const bool before_all = wrapper->name.empty();
    TORCH_CHECK(false, weights_of(folder).string(), ": ",
                before_all ? std::string("every tensor's name begins with ") + wrapper->part
                           : wrapper->name + " has " + wrapper->part + " in it",
                ", so a wrapper was saved and not the model; ", wrapper->remedy, ", or take it ",
                before_all ? "off the names" : "out of the names");
  }
  TORCH_CHECK(!shapes.contains("embed_tokens.weight"), weights_of(folder).string(),
              ": names lack model. and there is no head, so the model's body was saved alone; save it by ",
              "AutoModelForCausalLM");
  const auto check_rows = [&](const char* name, const char* what, const std::string& remedy) {
    const auto table = shapes.find(name);
    if (table == shapes.end() || table->second.empty()) return;
    TORCH_CHECK(table->second.front() == config.vocabulary, weights_of(folder).string(), ": the ", what, " has ",
                table->second.front(), " rows, and config.json says vocab_size ", config.vocabulary, remedy);
  };
  const auto embedding = shapes.find(kEmbedding);
  const auto rows = embedding == shapes.end() || embedding->second.empty() ? 0 : embedding->second.front();
  check_rows(kEmbedding, "embedding",
             c10::str("; set vocab_size to ", rows, ", or resize the embedding and save the model again"));
  if (!config.tied_head && !config.reward_head) {
    check_rows(kHead, "lm_head", "; save the model again with a head of as many rows as its embedding");
  }
}

bool stores_own_head(const fs::path& folder, const DecoderConfig& config) {
  if (!config.tied_head || config.reward_head) return false;
  const auto shapes = stored_shapes(folder);
  const auto embedding = shapes.find(kEmbedding), head = shapes.find(kHead);
  if (embedding == shapes.end() || head == shapes.end()) return false;
  if (embedding->second != head->second) return true;
  const auto both = [](const std::string& stored) {
    return stored == kEmbedding || stored == kHead ? stored : std::string();
  };
  train::SafetensorsSource source(weights_of(folder), {.name = both});
  source.check({{.name = kEmbedding, .sizes = embedding->second}, {.name = kHead, .sizes = head->second}});
  const auto numel = c10::multiply_integers(head->second);
  constexpr std::int64_t kPiece = train::kPieceBytes / 4;
  for (std::int64_t first = 0; first < numel; first += kPiece) {
    const auto piece = [&](const char* name) {
      auto values = torch::empty({std::min(kPiece, numel - first)});
      source.read(name, head->second, first, values);
      return values;
    };
    if (!piece(kEmbedding).equal(piece(kHead))) return true;
  }
  return false;
}

std::string weights_digest(const fs::path& folder) {
  std::map<std::string, std::string> of_tensors;  // by name, so that how a model is cut into files changes nothing
  for (const auto& path : files_of(folder)) {
    const train::InputFile file(path);
    std::uint64_t header = 0;
    file.read(0, &header, sizeof header);  // little-endian, as this machine is
    for (const auto& tensor : train::read_header(file).tensors) {
      auto text = tensor.dtype;
      for (const auto size : tensor.shape) text += " " + std::to_string(size);
      const auto bytes = tensor.end - tensor.begin, count = std::min<std::uint64_t>(64, bytes);
      for (const auto at : {std::uint64_t{0}, (bytes - count) / 2, bytes - count}) {
        std::string piece(count, '\0');
        file.read(8 + header + tensor.begin + at, piece.data(), piece.size());
        text += piece;
      }
      of_tensors[tensor.name] = text;
    }
  }
  if (of_tensors.empty()) return {};
  train::Sha256 digest;
  for (const auto& [name, text] : of_tensors) {
    digest.update(name.data(), name.size());
    digest.update(text.data(), text.size());
  }
  return digest.hex();
}

}  // namespace sealift::trainer
