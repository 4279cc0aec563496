// SPDX-License-Identifier: Apache-2.0
// Peak memory of a start, by rank: no rank ever holds more of a model than its shard and a unit.
// Counted by the allocator while `parallelize` gives first values; what a step needs is in memory_test.cpp.
// The model of a gigabyte comes from a file that is a hole but for its ends, so that writing it costs nothing.
#include "tests/support/counting_allocator.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/train/fixture.hpp"

using namespace sealift::test;

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

class SquareImpl : public torch::nn::Module {
 public:
  explicit SquareImpl(std::int64_t width) : weight(register_parameter("weight", torch::empty({width, width}))) {
    torch::nn::init::normal_(weight);
  }
  at::Tensor forward(const at::Tensor& x) { return torch::mm(x, weight); }
  at::Tensor weight;
};
TORCH_MODULE(Square);

class PileImpl : public torch::nn::Module {
 public:
  PileImpl(std::int64_t layers, std::int64_t width) {
    for (std::int64_t i = 0; i < layers; ++i) {
      blocks.push_back(register_module("block" + std::to_string(i), Shardable<Square>(width)));
    }
  }
  at::Tensor forward(at::Tensor x) {
    for (auto& block : blocks) x = block(x);
    return x;
  }
  std::vector<Shardable<Square>> blocks;
};
TORCH_MODULE(Pile);

/// Block i's weights are zero but for the last one, which is i + 1.
void write_sparse(const std::filesystem::path& path, std::int64_t layers, std::int64_t width) {
  sealift::safetensors::Header header;
  for (std::int64_t i = 0; i < layers; ++i) {
    header.tensors.push_back(describe("block" + std::to_string(i) + ".weight", at::kFloat, {width, width}));
  }
  write_file(path, sealift::safetensors::write_header(header));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (const auto& tensor : header.tensors) {
    const auto value = std::stof(tensor.name.substr(5)) + 1;
    file.seekp(static_cast<std::streamoff>(header.data_begin + tensor.end - sizeof value));
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  }
}

/// The most that this rank held at once since its call, above what it held then.
template <class Work>
std::int64_t peak_of(const Work& work) {
  auto& mine = *CountingAllocator::mine;
  const auto before = mine.live.load();
  mine.peak = before;
  work();
  return mine.peak - before;
}

}  // namespace

TEST_CASE("a model of a gigabyte starts on four ranks with a quarter of it on each") {
  CountingAllocator::install();
  const std::int64_t layers = 16, width = 4096, unit = 4 * width * width, quarter = layers * unit / 4;
  REQUIRE(4 * quarter == 1024 * kMiB);
  const TempDir folder;
  write_sparse(folder / "model.safetensors", layers, width);
  CountingAllocator::all.peak = CountingAllocator::all.live.load();
  const auto before = CountingAllocator::all.live.load();
  on_ranks(4, [&](const World& world) {
    const auto groups = groups_of(world, fsdp());
    const auto peak = peak_of([&] {
      std::optional<MetaDevice> meta(std::in_place);
      Shardable<Pile> net(layers, width);
      meta.reset();
      SafetensorsSource source(folder.path());
      const auto parallel = parallelize(*net, groups, fsdp(), &source);
      for (const auto& [name, sizes, offset, shard, replicated, stored, copies, copy] : parallel.parameters()) {
        const bool has_last = offset + shard.numel() == width * width;
        CHECK(shard.sum().item<float>() == (has_last ? std::stof(name.substr(5)) + 1 : 0));
      }
    });
    CHECK(peak >= quarter);
    CHECK(peak <= quarter + unit / 4);
  });
  CHECK(CountingAllocator::all.peak - before <= 4 * quarter + unit);
}

TEST_CASE("an init function holds one parameter beside the shard") {
  CountingAllocator::install();
  const std::int64_t layers = 8, width = 2048, unit = 4 * width * width, quarter = layers * unit / 4;
  on_ranks(4, [&](const World& world) {
    const auto groups = groups_of(world, fsdp());
    const auto peak = peak_of([&] {
      std::optional<MetaDevice> meta(std::in_place);
      Shardable<Pile> net(layers, width);
      meta.reset();
      InitFunction source([](const std::string&, at::Tensor tensor, const at::Generator&) { tensor.fill_(2); }, 0);
      const auto parallel = parallelize(*net, groups, fsdp(), &source);
      for (const auto& shard : parallel.shards()) CHECK(shard.eq(2).all().item<bool>());
    });
    CHECK(peak <= quarter + unit + kMiB + unit / 4);  // the last for the comparison itself
  });
}

TEST_CASE("when rank 0 alone has built the model, the others never hold more than their shard and a piece") {
  CountingAllocator::install();
  const std::int64_t layers = 8, width = 3072, unit = 4 * width * width, quarter = layers * unit / 4;
  REQUIRE(unit > 2 * kPieceBytes);
  on_ranks(4, [&](const World& world) {
    const auto groups = groups_of(world, fsdp());
    const auto peak = peak_of([&] {
      std::optional<MetaDevice> meta;
      if (world.rank > 0) meta.emplace();
      Shardable<Pile> net(layers, width);
      meta.reset();
      parallelize(*net, groups, fsdp());
    });
    // A thread of Gloo's lets the last piece of a unit go when it gets to it, which may be in the next unit.
    const auto most = quarter + 2 * kPieceBytes + kMiB;
    CHECK(peak <= (world.rank > 0 ? most : layers * unit + most));
  });
}

// Qwen2.5-32B, by its published configuration.

namespace {

constexpr std::int64_t kHidden = 5120, kKeys = 1024, kInner = 27648, kVocabulary = 152064, kLayers = 64;

class ScaleImpl : public torch::nn::Module {
 public:
  ScaleImpl() { register_parameter("weight", torch::ones({kHidden})); }
};
TORCH_MODULE(Scale);

class QwenLayerImpl : public torch::nn::Module {
 public:
  QwenLayerImpl() {
    const auto linear = [&](const char* name, std::int64_t in, std::int64_t out, bool bias) {
      register_module(name, torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(bias)));
    };
    linear("q_proj", kHidden, kHidden, true);
    linear("k_proj", kHidden, kKeys, true);
    linear("v_proj", kHidden, kKeys, true);
    linear("o_proj", kHidden, kHidden, false);
    linear("gate_proj", kHidden, kInner, false);
    linear("up_proj", kHidden, kInner, false);
    linear("down_proj", kInner, kHidden, false);
    register_module("input_layernorm", Scale());
    register_module("post_attention_layernorm", Scale());
  }
  at::Tensor forward(const at::Tensor& x) { return x; }
};
TORCH_MODULE(QwenLayer);

class QwenImpl : public torch::nn::Module {
 public:
  QwenImpl() {
    register_module("embed_tokens", torch::nn::Embedding(kVocabulary, kHidden));
    for (std::int64_t i = 0; i < kLayers; ++i) {
      register_module("layer" + std::to_string(i), Shardable<QwenLayer>());
    }
    register_module("norm", Scale());
    register_module("lm_head", torch::nn::Linear(torch::nn::LinearOptions(kHidden, kVocabulary).bias(false)));
  }
  at::Tensor forward(const at::Tensor& x) { return x; }
};
TORCH_MODULE(Qwen);

}  // namespace

TEST_CASE("Qwen2.5-32B is built without memory, and each of eight ranks would hold its eighth") {
  CountingAllocator::install();
  std::int64_t parameters = 0, shard = 0, ranks = 8;
  const auto peak = peak_of([&] {
    std::optional<MetaDevice> meta(std::in_place);
    Shardable<Qwen> net;
    meta.reset();
    for (const auto& plan : plan_units(*net, fsdp())) {
      parameters += plan.numel();
      for (const auto& flat : sealift::train::detail::split_into_flats(plan.parameters)) {
        std::vector<std::vector<std::int64_t>> shapes;
        for (const auto& parameter : flat) shapes.push_back(parameter.tensor.sizes().vec());
        shard += make_flat_layout(shapes, ranks).shard_numel;
      }
    }
  });
  CHECK(parameters == 32'763'876'352);  // what its publisher counts
  CHECK(shard * ranks >= parameters);
  CHECK(static_cast<double>(shard * ranks) <= 1.001 * static_cast<double>(parameters));
  CHECK(peak < 8 * kMiB);  // the norms' ones
}
