// SPDX-License-Identifier: Apache-2.0
// Plain safetensors out and in: every world exports the same bytes, a slab at a time, and starts from files that others
// wrote. export_python_test opens the files in Python. The peak is counted by LibTorch's own allocator, per thread and
// so per rank.
#include "tests/train/checkpoint/checkpoint_fixture.hpp"

using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

/// While it lives, counts what all ranks together hold of LibTorch's host memory.
class PeakBytes : public at::Allocator {
 public:
  PeakBytes() : inner_(c10::GetAllocator(at::kCPU)) { c10::SetAllocator(at::kCPU, this, 255); }
  ~PeakBytes() override { c10::SetAllocator(at::kCPU, inner_, 255); }

  at::DataPtr allocate(std::size_t bytes) override {
    auto* held = new Held{inner_->allocate(bytes), this, static_cast<std::int64_t>(bytes)};
    const auto now = now_ += held->bytes;
    for (auto peak = peak_.load(); now > peak && !peak_.compare_exchange_weak(peak, now);) {
    }
    return {held->inner.get(), held, release, at::kCPU};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  std::int64_t peak() const { return peak_; }

 private:
  struct Held {
    at::DataPtr inner;
    PeakBytes* owner;
    std::int64_t bytes;
  };
  static void release(void* context) {
    auto* held = static_cast<Held*>(context);
    held->owner->now_ -= held->bytes;
    delete held;
  }

  at::Allocator* inner_;
  std::atomic<std::int64_t> now_ = 0, peak_ = 0;
};

std::map<std::string, at::Tensor> read_all(const fs::path& path) {
  std::map<std::string, at::Tensor> result;
  const InputFile file(path);
  const auto header = read_header(file);
  for (const auto& entry : header.tensors) {
    std::vector<std::int64_t> shape(entry.shape.begin(), entry.shape.end());
    auto tensor = torch::empty(shape, scalar_type(entry.dtype, entry.name));
    file.read(header.data_begin + entry.begin, tensor.mutable_data_ptr(), entry.bytes());
    result[entry.name] = tensor;
  }
  return result;
}

}  // namespace

TEST_CASE("every world exports the same file, and it holds the whole model") {
  const TempDir folder;
  std::string first;
  for (const auto& [size, policy] :
       std::vector<std::pair<std::int64_t, Policy>>{{1, none()}, {2, ddp()}, {3, fsdp()}, {4, hsdp(2)}, {8, fsdp()}}) {
    const auto path = folder / ("model" + std::to_string(size) + ".safetensors");
    std::map<std::string, at::Tensor> expected;
    on_ranks(size, [&, &policy = policy](const World& world) {
      Trainee trainee(world, policy);
      export_safetensors(path, *trainee.net, trainee.parallel, {.slab_bytes = 100});
      auto whole = trainee.whole();
      whole["seen"] = trainee.net->seen;
      if (world.rank == 0) expected = std::move(whole);
    });
    check_equal(read_all(path), expected);
    if (first.empty()) first = read_file(path);
    CHECK(read_file(path).substr(0, 8) == first.substr(0, 8));
    CHECK(read_file(path).size() == first.size());
  }
}

TEST_CASE("bits survive the gathering: negative zero, infinities and odd NaNs") {
  const TempDir folder;
  const auto values =
      torch::tensor(std::vector<std::int64_t>{0x80000000, 0x7f800000, 0x7fc00001, 0xff800001, 1, 0}).to(torch::kInt32);
  on_ranks(3, [&](const World& world) {
    Shardable<torch::nn::Linear> linear(6, 4);
    {
      at::NoGradGuard no_grad;
      linear->weight.view(torch::kInt32).copy_(values.expand({4, 6}));
    }
    auto parallel = parallelize(*linear, make_groups(world, {1, 3}), fsdp());
    export_safetensors(folder / "bits.safetensors", *linear, parallel);
  });
  CHECK(read_all(folder / "bits.safetensors").at("weight").view(torch::kInt32).equal(values.expand({4, 6})));
}

TEST_CASE("no rank ever holds more than a few slabs of what others hold") {
  const TempDir folder;
  constexpr std::int64_t kSlab = 4096;  // of 64
  std::unique_ptr<PeakBytes> count;
  on_ranks(2, [&](const World& world) {
    Shardable<torch::nn::Linear> linear(256, 256);
    auto parallel = parallelize(*linear, make_groups(world, {1, 2}), fsdp());
    auto& everyone = parallel.groups().world;
    everyone.barrier();
    if (world.rank == 0) count = std::make_unique<PeakBytes>();
    everyone.barrier();
    export_safetensors(folder / "model.safetensors", *linear, parallel, {.slab_bytes = kSlab});
    everyone.barrier();
  });
  // Per rank: the slab, the one before it while the collective lets go of it, and the texts of the agreement.
  CHECK(count->peak() >= 2 * kSlab);
  CHECK(count->peak() <= 2 * (3 * kSlab + 4000));
}

TEST_CASE("a set of files obeys its size, lists every tensor, and is refused a second time in one folder") {
  const TempDir folder;
  const auto path = folder / "hf";
  std::map<std::string, at::Tensor> expected;
  on_ranks(2, [&](const World& world) {
    Trainee trainee(world, fsdp());
    auto whole = trainee.whole();
    whole["seen"] = trainee.net->seen;
    if (world.rank == 0) expected = std::move(whole);
    export_safetensors(path, *trainee.net, trainee.parallel, {.max_file_bytes = 2000});
    CHECK_THROWS_WITH(export_safetensors(path, *trainee.net, trainee.parallel, {.max_file_bytes = 2000}),
                      doctest::Contains("has an export already"));
  });
  const auto index = sealift::safetensors::parse_json(read_file(path / "model.safetensors.index.json"), 8, "index");
  std::map<std::string, at::Tensor> got;
  std::uint64_t total = 0;
  std::set<std::string> files;
  for (const auto& [name, file] : index["weight_map"].items()) files.insert(file.get<std::string>());
  for (const auto& file : files) {
    const auto header = read_header(InputFile(path / file));
    const bool fits = header.data_bytes() <= 2000 || header.tensors.size() == 1;
    CHECK(fits);
    CHECK(header.metadata.at("format") == "pt");
    total += header.data_bytes();
    for (const auto& [name, tensor] : read_all(path / file)) {
      CHECK(index["weight_map"][name].get<std::string>() == file);
      got[name] = tensor;
    }
  }
  const auto count = std::to_string(files.size());
  CHECK(files.size() > 3);
  CHECK(*files.begin() == "model-00001-of-0000" + count + ".safetensors");
  CHECK(index["metadata"]["total_size"].get<std::uint64_t>() == total);
  check_equal(got, expected);
  CHECK(std::distance(fs::directory_iterator(path), fs::directory_iterator()) == static_cast<long>(files.size()) + 1);
}

TEST_CASE("floating tensors can be exported narrower, others stay") {
  const TempDir folder;
  on_ranks(2, [&](const World& world) {
    Trainee trainee(world, fsdp());
    export_safetensors(folder / "half.safetensors", *trainee.net, trainee.parallel, {.dtype = at::kBFloat16});
    const auto whole = trainee.whole();
    if (world.rank != 0) return;
    const auto got = read_all(folder / "half.safetensors");
    CHECK(got.at("tokens.weight").equal(whole.at("tokens.weight").to(at::kBFloat16)));
    CHECK(dtype_name(got.at("seen").scalar_type()) == "I64");
  });
}

TEST_CASE("a tensor that is said to keep its dtype is not narrowed with the others") {
  const TempDir folder;
  on_ranks(2, [&](const World& world) {
    Trainee trainee(world, fsdp());
    const auto keeps = [](const std::string& name) { return name == "tokens.weight"; };
    export_safetensors(folder / "half.safetensors", *trainee.net, trainee.parallel,
                       {.dtype = at::kBFloat16, .keeps_dtype = keeps});
    const auto whole = trainee.whole();
    if (world.rank != 0) return;
    const auto got = read_all(folder / "half.safetensors");
    CHECK(got.at("tokens.weight").equal(whole.at("tokens.weight")));
    std::int64_t narrow = 0;
    for (const auto& [name, tensor] : got) narrow += tensor.scalar_type() == at::kBFloat16 ? 1 : 0;
    CHECK(narrow > 0);
  });
}

TEST_CASE("a checkpoint becomes plain files without ranks or model, from any world that saved it") {
  const TempDir folder;
  for (const auto& [size, policy] :
       std::vector<std::pair<std::int64_t, Policy>>{{1, none()}, {3, ddp()}, {3, fsdp()}, {4, hsdp(2)}}) {
    const TempDir saved;
    std::map<std::string, at::Tensor> expected;
    on_ranks(size, [&, &policy = policy](const World& world) {
      Trainee trainee(world, policy);
      trainee.train(0, 1);
      trainee.save(saved.path(), 1);
      auto whole = trainee.whole();
      whole["seen"] = trainee.net->seen;
      if (world.rank == 0) expected = std::move(whole);
    });
    const auto path = saved / "model.safetensors";
    export_checkpoint(saved / "step-000001", path, {.slab_bytes = 100});
    check_equal(read_all(path), expected);
    auto broken = read_file(saved / "step-000001" / "rank-00000.safetensors");
    broken.back() ^= 1;
    write_file(saved / "step-000001" / "rank-00000.safetensors", broken);
    CHECK_THROWS_WITH(export_checkpoint(saved / "step-000001", saved / "other"), doctest::Contains("SHA-256"));
    CHECK(!fs::exists(saved / "other"));
  }
}

TEST_CASE("a model starts from one file, from a folder with one, and from a set; dtypes are converted") {
  const TempDir folder;
  std::map<std::string, at::Tensor> expected, rounded;
  on_ranks(1, [&](const World& world) {
    Trainee trainee(world, none(), 4.0);
    trainee.net->seen += 3;
    fs::create_directories(folder / "one");
    export_safetensors(folder / "one" / "model.safetensors", *trainee.net, trainee.parallel);
    export_safetensors(folder / "set", *trainee.net, trainee.parallel, {.max_file_bytes = 1500});
    export_safetensors(folder / "half.safetensors", *trainee.net, trainee.parallel, {.dtype = at::kBFloat16});
    expected = trainee.whole();
  });
  for (const auto& [name, tensor] : expected) rounded[name] = tensor.to(at::kBFloat16).to(at::kFloat);
  for (const auto& [size, policy] :
       std::vector<std::pair<std::int64_t, Policy>>{{1, none()}, {3, fsdp()}, {4, hsdp(2)}}) {
    on_ranks(size, [&, &policy = policy](const World& world) {
      Trainee trainee(world, policy);
      load_safetensors(folder / "one", *trainee.net, trainee.parallel);
      check_equal(trainee.whole(), expected);
      CHECK(trainee.net->seen[0].item<int>() == 3);
      load_safetensors(folder / "half.safetensors", *trainee.net, trainee.parallel);
      check_equal(trainee.whole(), rounded);
      load_safetensors(folder / "set", *trainee.net, trainee.parallel);
      check_equal(trainee.whole(), expected);
    });
  }
}

TEST_CASE("plain files of another model, or that lead out of their folder, are refused and nothing changes") {
  const TempDir folder;
  const auto refused = [&](const fs::path& path) {
    std::string message;
    on_ranks(2, [&](const World& world) {
      Trainee trainee(world, fsdp());
      const auto before = trainee.whole();
      try {
        load_safetensors(path, *trainee.net, trainee.parallel);
        FAIL_CHECK("it was loaded");
      } catch (const std::exception& error) {
        if (world.rank == 0) message = error.what();
      }
      check_equal(trainee.whole(), before);
    });
    return message;
  };
  const auto says = [](const std::string& message, const std::string& text) {
    CAPTURE(message);
    CAPTURE(text);
    CHECK(message.find(text) != std::string::npos);
  };
  std::map<std::string, at::Tensor> whole;
  on_ranks(1, [&](const World& world) {
    Trainee trainee(world, none());
    whole = trainee.whole();
    whole["seen"] = trainee.net->seen;
  });
  const auto with = [&](auto change, const std::string& text) {
    auto tensors = whole;
    change(tensors);
    write_tensor_file(folder / "model.safetensors", TensorList(tensors.begin(), tensors.end()), {});
    says(refused(folder.path()), text);
  };
  with([](auto& t) { t.erase("gain"); }, "Not stored: gain.");
  with([](auto& t) { t["head"] = torch::zeros({2}); }, "Not in the model: head.");
  with([](auto& t) { t["gain"] = torch::zeros({1}); },
       "gain (stored F32 [1] in model.safetensors, the model has F32 [])");
  with([](auto& t) { t["gain"] = torch::zeros({}, torch::kInt64); }, "gain (stored I64 []");
  with([](auto& t) { t["seen"] = torch::zeros({2}); }, "seen (stored F32 [2]");
  says(refused(folder / "missing.safetensors"), "missing.safetensors: the file cannot be opened");
  const auto index = folder / "model.safetensors.index.json";
  for (const std::string name : {"../model.safetensors", "/etc/passwd", "..", "", "a/b"}) {
    write_file(index, "{\"weight_map\": {\"gain\": \"" + name + "\"}}");
    says(refused(folder.path()), "which is not in its folder");
  }
  write_file(index, "{\"weight_map\": {\"gain\": 1}}");
  says(refused(folder.path()), "weight_map is no text");
  write_file(index, "{\"weight_map\": {\"a\": \"model.safetensors\", \"b\": \"copy.safetensors\"}}");
  fs::copy(folder / "model.safetensors", folder / "copy.safetensors");
  says(refused(folder.path()), "which another file has too");
}

TEST_CASE("a rank 0 that cannot write fails the export on every rank without leaving one waiting") {
  const TempDir folder;
  on_ranks(2, [&](const World& world) {
    Trainee trainee(world, fsdp());
    CHECK_THROWS_WITH(export_safetensors(folder / "no" / "folder", *trainee.net, trainee.parallel),
                      doctest::Contains("the file cannot be made"));
    trainee.train(0, 1);
  });
  CHECK(fs::is_empty(folder.path()));
}
