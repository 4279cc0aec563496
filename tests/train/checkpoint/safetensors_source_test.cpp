// SPDX-License-Identifier: Apache-2.0
// safetensors_source.hpp: which bytes a rank reads, names and ties, and what is refused.
// That the values are right on every mesh is in flat/source_test.cpp; hostile headers are safetensors.hpp's own tests
// and, through this source, the last case here.
#include "tests/support/hostile/hostile_safetensors.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/train/fixture.hpp"

#include <sys/syscall.h>

using namespace sealift::test;

namespace {

/// The reads of this thread, which is a rank: (offset, bytes).
thread_local std::vector<std::pair<off_t, std::size_t>>* reads = nullptr;

}  // namespace

// In the place of the C library's, for the whole program.
extern "C" ssize_t pread(int fd, void* buffer, std::size_t bytes, off_t offset) {
  if (reads) reads->emplace_back(offset, bytes);
  return syscall(SYS_pread64, fd, buffer, bytes, offset);
}

namespace {

TensorList tensors_of(const torch::nn::Module& module) {
  TensorList tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace_back(item.key(), item.value().detach());
  return tensors;
}

/// A net on the meta device.
Shardable<Net> bare_net() {
  const MetaDevice meta;
  return Shardable<Net>();
}

/// The net in two files with an index.
void write_set(const std::filesystem::path& folder) {
  const auto tensors = tensors_of(*Net());
  const auto half = tensors.begin() + 12;
  write_tensor_file(folder / "model-00001-of-00002.safetensors", {tensors.begin(), half}, {});
  write_tensor_file(folder / "model-00002-of-00002.safetensors", {half, tensors.end()}, {});
  std::string map;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    map += (i ? ",\"" : "\"") + tensors[i].first + "\":\"model-0000" + (i < 12 ? "1" : "2") + "-of-00002.safetensors\"";
  }
  write_file(folder / "model.safetensors.index.json", "{\"metadata\":{},\"weight_map\":{" + map + "}}");
}

/// The head of this is tied to its embedding, under a second name.
class TiedImpl : public torch::nn::Module {
 public:
  TiedImpl() : tokens(register_module("tokens", torch::nn::Embedding(7, 4))) {
    register_parameter("head", tokens->weight);
  }
  at::Tensor forward(const at::Tensor& ids) { return torch::linear(tokens(ids), tokens->weight); }
  torch::nn::Embedding tokens;
};
TORCH_MODULE(Tied);

}  // namespace

TEST_CASE("each rank reads the headers and then every byte of its shards once") {
  const TempDir folder;
  write_set(folder.path());
  for (const auto& policy : {fsdp(), hsdp(2), ddp()}) {
    CAPTURE(to_string(policy.method));
    std::mutex guard;
    std::size_t in_all = 0, model = 0;
    on_ranks(4, [&](const World& world) {
      auto net = bare_net();
      std::vector<std::pair<off_t, std::size_t>> seen;
      const auto groups = groups_of(world, policy);
      SafetensorsSource source(folder.path());
      reads = &seen;
      auto parallel = parallelize(*net, groups, policy, &source);
      reads = nullptr;
      std::size_t held = 0, read = 0, pieces = 0, whole = 0;
      for (const auto& parameter : parallel.parameters()) {
        held += parameter.shard.nbytes();
        pieces += parameter.shard.numel() > 0;
        whole += static_cast<std::size_t>(c10::multiply_integers(parameter.sizes)) * sizeof(float);
      }
      for (const auto& [offset, bytes] : seen) read += bytes;
      const std::lock_guard lock(guard);
      CHECK(read == held);
      CHECK(seen.size() == pieces);
      in_all += read;
      model = whole;
    });
    const auto copies = policy.method == ParallelMethod::Ddp ? 4 : policy.method == ParallelMethod::Hsdp ? 2 : 1;
    CHECK(in_all == copies * model);
  }
}

TEST_CASE("a large tensor of another dtype is converted in pieces of bounded size") {
  const TempDir folder;
  const std::int64_t numel = 5 * kPieceBytes / 4 + 3;  // of floats: a piece and a bit, twice that as halves
  const auto stored = (torch::arange(numel) % 1000).to(torch::kHalf);
  write_tensor_file(folder / "model.safetensors", {{"w", stored}}, {});
  SafetensorsSource source(folder.path());
  source.check({{.name = "w", .sizes = {numel}, .dtype = at::kFloat}});
  std::vector<std::pair<off_t, std::size_t>> seen;
  auto out = torch::full({numel - 5}, -1.0);
  reads = &seen;
  source.read("w", {numel}, 5, out);
  reads = nullptr;
  CHECK(out.equal(stored.narrow(0, 5, numel - 5).to(torch::kFloat)));
  CHECK(seen.size() == 3);
  for (const auto& [offset, bytes] : seen) CHECK(bytes <= static_cast<std::size_t>(kPieceBytes));
}

TEST_CASE("names can be mapped, left out, and given by another source") {
  const TempDir folder;
  auto tensors = tensors_of(*Net());
  const auto gain = tensors.front();
  REQUIRE(gain.first == "gain");
  tensors.erase(tensors.begin());
  for (auto& [name, tensor] : tensors) name = "model." + name;
  tensors.emplace_back("rotary.inv_freq", torch::ones({3}));
  write_tensor_file(folder / "model.safetensors", tensors, {});

  const auto fill = [&](const std::string& name, const at::Tensor& tensor, const at::Generator&) {
    CHECK(name == "gain");
    tensor.copy_(gain.second);
  };
  InitFunction rest(fill, 0);
  SafetensorsSource source(folder.path(), {.name =
                                               [](const std::string& stored) {
                                                 return stored.starts_with("model.") ? stored.substr(6) : std::string();
                                               },
                                           .otherwise = &rest});
  auto net = bare_net();
  auto parallel = parallelize(*net, Groups{}, {.method = ParallelMethod::None}, &source);
  const Net expected;
  for (const auto& item : expected->named_parameters()) {
    CHECK(net->named_parameters()[item.key()].equal(item.value()));
  }
}

TEST_CASE("a tied parameter is read under any of its names and stays tied") {
  const TempDir folder;
  const auto weight = torch::arange(28, torch::kFloat).view({7, 4});
  for (const auto& names :
       std::vector<std::vector<std::string>>{{"tokens.weight"}, {"head"}, {"head", "tokens.weight"}}) {
    CAPTURE(names.front());
    TensorList tensors;
    for (const auto& name : names) tensors.emplace_back(name, weight);
    write_tensor_file(folder / "model.safetensors", tensors, {});
    on_ranks(2, [&](const World& world) {
      std::optional<MetaDevice> meta(std::in_place);
      Shardable<Tied> net;
      meta.reset();
      SafetensorsSource source(folder.path());
      auto parallel = parallelize(*net, groups_of(world, fsdp()), fsdp(), &source);
      const auto whole = parallel.gather_parameters();
      CHECK(net->tokens->weight.equal(weight));
      CHECK(net->named_parameters()["head"].is_same(net->tokens->weight));
    });
  }
}

TEST_CASE("files of another model are refused by name, file, expected and got, before anything is changed") {
  const TempDir folder;
  const auto refused = [&](const TensorList& tensors, const char* text) {
    CAPTURE(text);
    write_tensor_file(folder / "model.safetensors", tensors, {});
    on_ranks(2, [&](const World& world) {
      auto net = bare_net();
      const auto groups = groups_of(world, fsdp());
      SafetensorsSource source(folder.path());
      CHECK_THROWS_WITH(parallelize(*net, groups, fsdp(), &source), doctest::Contains(text));
      CHECK(net->tokens->weight.is_meta());
    });
  };
  const auto with = [](const std::string& name, const at::Tensor& tensor) {
    auto tensors = tensors_of(*Net());
    std::erase_if(tensors, [&](const auto& item) { return item.first == name; });
    if (tensor.defined()) tensors.emplace_back(name, tensor);
    return tensors;
  };
  refused(with("gain", {}), "Not stored: gain.");
  refused(with("new", torch::ones({2})), "Not in the model: new.");
  refused(with("tokens.weight", torch::ones({12, 12})),
          "tokens.weight (stored F32 [12, 12] in model.safetensors, the model has F32 [13, 12])");
  refused(with("gain", torch::ones({}, torch::kInt64)),
          "gain (stored I64 [] in model.safetensors, the model has F32 [])");
  refused(with("gain", torch::ones({1})), "gain (stored F32 [1]");
}

TEST_CASE("a buffer without memory that is in no file is refused by name") {
  class HoleImpl : public torch::nn::Module {
   public:
    HoleImpl() { register_buffer("cache", torch::empty({4})); }
    at::Tensor forward(const at::Tensor& x) { return x; }
  };
  std::optional<MetaDevice> meta(std::in_place);
  Shardable<torch::nn::ModuleHolder<HoleImpl>> net;
  meta.reset();
  const TempDir folder;
  write_tensor_file(folder / "model.safetensors", {}, {});
  SafetensorsSource source(folder.path());
  CHECK_THROWS_WITH(parallelize(*net, Groups{}, {.method = ParallelMethod::None}, &source),
                    doctest::Contains("Not stored: cache."));
}

TEST_CASE("a hostile file is refused as soon as it is opened") {
  const TempDir folder;
  for (const auto& hostile : hostile_safetensors()) {
    CAPTURE(hostile.row);
    CAPTURE(hostile.name);
    write_file(folder / "model.safetensors", hostile.bytes);
    CHECK_THROWS_WITH(SafetensorsSource(folder.path()), doctest::Contains(hostile.word.c_str()));
  }
  std::filesystem::remove(folder / "model.safetensors");
  CHECK_THROWS_WITH(SafetensorsSource(folder.path()), doctest::Contains("cannot be opened"));
}

TEST_CASE("a file that is cut after it was opened is an error that names it") {
  const TempDir folder;
  write_tensor_file(folder / "model.safetensors", {{"w", torch::ones({1000})}}, {});
  SafetensorsSource source(folder.path());
  source.check({{.name = "w", .sizes = {1000}}});
  std::filesystem::resize_file(folder / "model.safetensors", 400);
  auto out = torch::zeros({1000});
  CHECK_THROWS_WITH(source.read("w", {1000}, 0, out), doctest::Contains("model.safetensors ends at byte 400"));
}
