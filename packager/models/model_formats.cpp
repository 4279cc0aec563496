// SPDX-License-Identifier: Apache-2.0
// Names and first bytes of model files; see model_formats.hpp. Sources: transformers' and diffusers' constants for the
// names of weights, pickle.py for the opcodes, numpy.lib.format for .npy.
#include "packager/models/model_formats.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "bundle/core/text_parts.hpp"
#include "sealift/bundle/core/byte_source.hpp"

namespace sealift::packager {

namespace {

bool matches(const std::string& path, const std::string& pattern) {
  return ::fnmatch((pattern.ends_with('/') ? pattern + "*" : pattern).c_str(), path.c_str(), 0) == 0;
}

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? "" : path.substr(0, slash + 1);
}

// Weights in another format, and the stem of the safetensors files that hold the same weights.
struct Repeated {
  const char* pattern;
  const char* stem;
};
constexpr Repeated kRepeated[] = {{"pytorch_model*.bin", "model"},
                                  {"pytorch_model*.bin.index.json", "model"},
                                  {"tf_model*.h5", "model"},
                                  {"tf_model*.h5.index.json", "model"},
                                  {"flax_model*.msgpack", "model"},
                                  {"flax_model*.msgpack.index.json", "model"},
                                  {"rust_model.ot", "model"},
                                  {"model.ckpt*", "model"},
                                  {"model*.onnx", "model"},
                                  {"model*.onnx_data", "model"},
                                  {"consolidated*.pth", "model"},
                                  {"consolidated*.safetensors", "model"},
                                  {"adapter_model.bin", "adapter_model"},
                                  {"diffusion_pytorch_model*.bin", "diffusion_pytorch_model"},
                                  {"diffusion_flax_model*.msgpack", "diffusion_pytorch_model"}};
constexpr std::string_view kExports[] = {"onnx/", "openvino/", "coreml/", "original/"};

// The complete sets of safetensors files, as (folder, stem).
std::set<std::pair<std::string, std::string>> whole_safetensors(const std::vector<std::string>& paths) {
  std::set<std::pair<std::string, std::string>> whole;
  std::map<std::pair<std::string, std::string>, std::set<unsigned>> shards;
  for (const std::string& path : paths) {
    if (!path.ends_with(".safetensors")) continue;
    const std::string folder(folder_of(path)), name = path.substr(folder.size());
    if (const std::optional<ShardName> shard = shard_name(name)) {
      std::set<unsigned>& have = shards[{folder, shard->stem}];
      have.insert(shard->number);
      if (have.size() == shard->count) whole.insert({folder, shard->stem});
    } else {
      whole.insert({folder, name.substr(0, name.size() - std::string_view(".safetensors").size())});
    }
  }
  return whole;
}

std::string head_of(bundle::ByteSource& source, std::size_t size) {
  const bundle::Bytes bytes = source.read(0, std::min<std::uint64_t>(size, source.size()));
  return std::string(bundle::as_text(bytes));
}

// \x80, a protocol of 2 to 5, and an opcode that programs write next; two bytes alone would match by chance.
bool starts_as_pickle(std::string_view head) {
  static constexpr std::string_view kNext = "\x95\x8a}](cq)XUKJMNGB\x8c\x94";
  return head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5 && kNext.find(head[2]) != kNext.npos;
}

}  // namespace

bool matches_any(const std::string& path, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(path, pattern); });
}

bool is_bookkeeping(std::string_view path) {
  static const std::set<std::string_view> kNames = {".git", ".gitattributes", ".gitignore", ".cache",    ".msc", ".mdl",
                                                    ".mv",  ".locks",         ".DS_Store",  "._____temp"};
  const std::vector<std::string_view> parts = bundle::split(path, '/');
  return std::any_of(parts.begin(), parts.end(), [](std::string_view part) {
    return kNames.contains(part) || (part.starts_with("._") && part.size() > 2);  // what macOS keeps beside a file
  });
}

std::optional<ShardName> shard_name(std::string_view name) {
  const std::size_t of = name.find("-of-");
  if (of == name.npos) return std::nullopt;
  const std::size_t dash = name.rfind('-', of - (of > 0));
  if (of == 0 || dash == name.npos || dash >= of) return std::nullopt;
  const auto number = [](std::string_view text) -> std::optional<unsigned> {
    unsigned value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    return fault != std::errc() || end != text.data() + text.size() || value > 100'000 ? std::nullopt
                                                                                       : std::optional(value);
  };
  const std::size_t dot = std::min(name.find('.', of), name.size());
  const std::optional<unsigned> first = number(name.substr(dash + 1, of - dash - 1));
  const std::optional<unsigned> count = number(name.substr(of + 4, dot - of - 4));
  if (!first || !count || *first < 1 || *first > *count) return std::nullopt;
  return ShardName{.stem = std::string(name.substr(0, dash)),
                   .number = *first,
                   .count = *count,
                   .suffix = std::string(name.substr(dot))};
}

std::vector<std::string> duplicate_formats(const std::vector<std::string>& paths) {
  const auto whole = whole_safetensors(paths);
  const auto is_repeated = [&](const std::string& path) {
    const std::string folder(folder_of(path)), name = path.substr(folder.size());
    if (whole.contains({"", "model"}) && std::any_of(std::begin(kExports), std::end(kExports),
                                                     [&](std::string_view top) { return path.starts_with(top); }))
      return true;
    return std::any_of(std::begin(kRepeated), std::end(kRepeated), [&](const Repeated& repeated) {
      return whole.contains({folder, repeated.stem}) && matches(name, repeated.pattern);
    });
  };
  std::vector<std::string> out;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(out), is_repeated);
  return out;
}

std::string pickle_by_name(std::string_view path) {
  static const std::set<std::string_view> kSuffixes = {".pt",     ".pth",    ".ckpt", ".pkl",
                                                       ".pickle", ".joblib", ".dill", ".cloudpickle"};
  static constexpr const char* kNames[] = {"pytorch_model*.bin", "adapter_model*.bin", "diffusion_pytorch_model*.bin",
                                           "training_args.bin",  "optimizer*.bin",     "scheduler*.bin"};
  const std::string name(path.substr(folder_of(path).size()));
  const std::size_t dot = name.rfind('.');
  if (dot != name.npos && kSuffixes.contains(std::string_view(name).substr(dot)))
    return "files that end in " + name.substr(dot) + " are pickles";
  for (const char* pattern : kNames)
    if (matches(name, pattern)) return "torch.save writes a file of this name, and it is a pickle";
  return {};
}

std::string pickle_by_content(std::string_view path, const std::filesystem::path& file) {
  if (path.ends_with(".safetensors")) return {};  // begins with a length, which may look like anything
  bundle::FileSource source(file);
  const std::string head = head_of(source, 4096);
  if (starts_as_pickle(head)) return "it begins like a pickle";
  if (head.starts_with("PK\x03\x04")) {
    constexpr std::uint64_t kTail = std::uint64_t{1} << 20;
    const std::uint64_t from = source.size() - std::min(source.size(), kTail);
    const bundle::Bytes tail = source.read(from, source.size() - from);
    for (const std::string_view part : {std::string_view(head), std::string_view(bundle::as_text(tail))})
      if (part.find("data.pkl") != part.npos) return "it is a zip that holds a pickle, as torch.save writes";
  }
  if (head.starts_with("\x93NUMPY")) {
    const std::string_view described = std::string_view(head).substr(0, head.find('\n', 10));
    if (described.find("|O") != described.npos || described.find("'O'") != described.npos)
      return "it is a NumPy array of objects, which are pickled";
  }
  return {};
}

}  // namespace sealift::packager
