// SPDX-License-Identifier: Apache-2.0
// Checkpoints: training goes on from one as if it had never stopped, in the same world and in any other; and every
// fault of a checkpoint is an error before the model changes. checkpoint_kill_test is about what a kill leaves behind.
#include "tests/train/checkpoint/checkpoint_fixture.hpp"

using namespace sealift::test;
namespace train = sealift::train;
namespace fs = std::filesystem;

namespace {

struct Place {
  const char* name;
  std::int64_t size;
  Policy policy;
};

/// What a world computed: losses, then parameters and optimizer state whole.
struct Trained {
  std::vector<double> losses;
  std::map<std::string, at::Tensor> parameters, state;
  at::Tensor seen;
};

/// Trains `steps` more steps in `place`, from the checkpoint `from` if there is one, saving every five into `to`.
Trained train_in(const Place& place, std::int64_t first, std::int64_t last, const std::optional<fs::path>& from,
                 const std::optional<fs::path>& to = std::nullopt) {
  Trained trained;
  on_ranks(place.size, [&](const World& world) {
    // Different first values, so that nothing is right by chance.
    Trainee trainee(world, place.policy, from ? 2.5 : 0.0);
    if (from) {
      const auto state = trainee.load(*from);
      CHECK(state == Trainee::state(first));
    }
    auto losses = trainee.train(first, last);
    if (to) trainee.save(*to, last);
    auto parameters = trainee.whole();
    auto state = trainee.whole_state();
    if (world.rank == 0) trained = {std::move(losses), std::move(parameters), std::move(state), trainee.net->seen};
  });
  return trained;
}

/// A checkpoint of a small world after three steps, for tests that break it.
fs::path make_checkpoint(const fs::path& folder, std::int64_t size = 2) {
  train_in({"fsdp", size, fsdp()}, 0, 3, std::nullopt, folder);
  return folder / "step-000003";
}

/// The error of loading `path` into two new ranks; checks that both ranks have it and that nothing changed.
std::string refusal(const fs::path& path, std::function<void(Trainee&)> load = {}) {
  std::string message;
  on_ranks(2, [&](const World& world) {
    Trainee trainee(world, fsdp(), 1.5);
    const auto parameters = trainee.whole();
    const auto state = trainee.whole_state();
    try {
      load ? load(trainee) : static_cast<void>(trainee.load(path));
      FAIL_CHECK("it was loaded");
    } catch (const c10::Error& error) {
      if (world.rank == 0) message = error.what_without_backtrace();
    } catch (const std::exception& error) {
      if (world.rank == 0) message = error.what();
    }
    check_equal(trainee.whole(), parameters);
    check_equal(trainee.whole_state(), state);
    trainee.train(0, 1);  // and it still trains
  });
  return message;
}

void check_refused(const fs::path& path, const std::string& text) {
  const auto message = refusal(path);
  CAPTURE(message);
  CAPTURE(text);
  CHECK(message.find(text) != std::string::npos);
}

/// Changes a text in the index; the files stay.
void edit_index(const fs::path& path, const std::string& from, const std::string& to) {
  auto text = read_file(path / "index.json");
  REQUIRE(text.find(from) != std::string::npos);
  text.replace(text.find(from), from.size(), to);
  write_file(path / "index.json", text);
}

}  // namespace

TEST_CASE("in the same world training goes on bit for bit") {
  for (const auto& place :
       std::vector<Place>{{"none", 1, none()}, {"ddp", 2, ddp()}, {"fsdp", 3, fsdp()}, {"hsdp", 4, hsdp(2)}}) {
    CAPTURE(place.name);
    const TempDir folder;
    const auto through = train_in(place, 0, 10, std::nullopt);
    const auto before = train_in(place, 0, 5, std::nullopt, folder.path());
    const auto after = train_in(place, 5, 10, folder / "step-000005");
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(before.losses[i] == through.losses[i]);
      CHECK(after.losses[i] == through.losses[i + 5]);
    }
    check_equal(after.parameters, through.parameters);
    check_equal(after.state, through.state);
    CHECK(after.seen.equal(through.seen));
  }
}

TEST_CASE("a checkpoint of four ranks loads at any other size and mesh: equal values, and the same losses after") {
  const TempDir folder;
  for (const auto& saved : std::vector<Place>{{"fsdp", 4, fsdp()}, {"ddp", 4, ddp()}, {"hsdp", 4, hsdp(2)}}) {
    CAPTURE(saved.name);
    const auto at = folder / saved.name;
    const auto before = train_in(saved, 0, 5, std::nullopt, at);
    const auto through = train_in({"none", 1, none()}, 0, 10, std::nullopt);
    for (const auto& place : std::vector<Place>{{"none 1", 1, none()},
                                                {"ddp 2", 2, ddp()},
                                                {"fsdp 3", 3, fsdp()},
                                                {"ddp 4", 4, ddp()},
                                                {"fsdp 4", 4, fsdp()},
                                                {"hsdp 4x1", 4, hsdp(1)},
                                                {"hsdp 2x3", 6, hsdp(3)},
                                                {"fsdp 8", 8, fsdp()}}) {
      CAPTURE(place.name);
      const auto loaded = train_in(place, 5, 5, at / "step-000005");
      check_equal(loaded.parameters, before.parameters);
      check_equal(loaded.state, before.state);
      CHECK(loaded.seen.equal(before.seen));
      if (kBatch % place.size != 0) continue;  // the batch of twelve does not divide by eight
      const auto after = train_in(place, 5, 10, at / "step-000005");
      for (std::size_t i = 0; i < 5; ++i)
        CHECK(after.losses[i] == doctest::Approx(through.losses[i + 5]).epsilon(1e-5));
    }
  }
}

TEST_CASE("every element is written once, and ranks that hold the same share the writing") {
  for (const auto& place : std::vector<Place>{{"ddp", 3, ddp()}, {"fsdp", 3, fsdp()}, {"hsdp", 4, hsdp(2)}}) {
    CAPTURE(place.name);
    const TempDir folder;
    train_in(place, 0, 1, std::nullopt, folder.path());
    std::uint64_t elements = 0, largest = 0;
    for (std::int64_t rank = 0; rank < place.size; ++rank) {
      const auto header = read_header(InputFile(folder / "step-000001" / rank_file(rank)));
      std::uint64_t own = 0;
      for (const auto& tensor : header.tensors) {
        if (tensor.name.starts_with("model/")) own += tensor.shape[0];
      }
      elements += own;
      largest = std::max(largest, own);
    }
    std::uint64_t expected = 0;
    for (const auto& parameter : Net()->parameters()) expected += static_cast<std::uint64_t>(parameter.numel());
    CHECK(elements == expected);
    CHECK(largest < expected * 2 / static_cast<std::uint64_t>(place.size));
  }
}

TEST_CASE("the state of Adam, AdamW with amsgrad and SGD with momentum comes back, and so do their settings") {
  const auto try_optimizer = [](auto make) {
    const TempDir folder;
    on_ranks(2, [&](const World& world) {
      const auto step = [](Trainee& trainee, torch::optim::Optimizer& optimizer) {
        optimizer.zero_grad();
        const auto [ids, targets] = batch_of(trainee.world.rank);
        torch::nn::functional::cross_entropy(trainee.net(ids), targets).backward();
        optimizer.step();
      };
      Trainee one(world, fsdp());
      auto first = make(one.parallel, 0.05);
      step(one, first);
      for (auto& group : first.param_groups()) group.options().set_lr(0.0125);
      save_checkpoint(folder.path(), *one.net, one.parallel, &first, Trainee::state(1));
      step(one, first);

      Trainee two(world, fsdp(), 3.0);
      auto second = make(two.parallel, 0.05);
      step(two, second);
      load_checkpoint(folder / "step-000001", *two.net, two.parallel, &second);
      CHECK(second.param_groups()[0].options().get_lr() == 0.0125);
      step(two, second);
      check_equal(two.whole(), one.whole());
    });
  };
  try_optimizer([](const Parallel& parallel, double lr) {
    return torch::optim::Adam(parallel.shards(), torch::optim::AdamOptions(lr).betas({0.8, 0.95}));
  });
  try_optimizer([](const Parallel& parallel, double lr) {
    return torch::optim::AdamW(parallel.shards(), torch::optim::AdamWOptions(lr).amsgrad(true));
  });
  try_optimizer([](const Parallel& parallel, double lr) {
    return torch::optim::SGD(parallel.shards(), torch::optim::SGDOptions(lr).momentum(0.9).nesterov(true));
  });
}

TEST_CASE("an optimizer derived from AdamW is AdamW, and its tensors are written in place") {
  struct Fused : torch::optim::AdamW {
    using AdamW::AdamW;
  };
  const TempDir folder;
  on_ranks(1, [&](const World& world) {
    Trainee one(world, none());
    one.train(0, 2);
    one.save(folder.path(), 2);
    Trainee two(world, none(), 1.0);
    Fused fused(two.parallel.shards());
    for (const auto& shard : two.parallel.shards()) shard.mutable_grad() = torch::ones_like(shard);
    fused.step();
    const auto shard = two.parallel.shards()[0];
    const auto held = parameter_state(fused, shard)->tensors[0].second;
    const auto* before = held.const_data_ptr();
    CHECK(optimizer_kind(fused) == "AdamW");
    set_parameter_state(fused, shard, parameter_state(one.optimizer, one.parallel.shards()[0]));
    CHECK(parameter_state(fused, shard)->tensors[0].second.const_data_ptr() == before);
    CHECK(held.equal(parameter_state(one.optimizer, one.parallel.shards()[0])->tensors[0].second));
    CHECK(parameter_state(fused, shard)->step == 2);
    set_parameter_state(fused, shard, std::nullopt);
    CHECK(!parameter_state(fused, shard));
  });
}

TEST_CASE("without an optimizer the parameters alone are saved, and can be loaded alone") {
  const TempDir folder;
  on_ranks(2, [&](const World& world) {
    Trainee one(world, fsdp());
    one.train(0, 2);
    save_checkpoint(folder.path(), *one.net, one.parallel, nullptr, Trainee::state(1));
    one.save(folder.path(), 2);
    for (const char* name : {"step-000001", "step-000002"}) {
      Trainee two(world, fsdp(), 1.0);
      load_checkpoint(folder / name, *two.net, two.parallel, nullptr);
      check_equal(two.whole(), one.whole());
      CHECK(!parameter_state(two.optimizer, two.parallel.shards()[0]));
    }
  });
  check_refused(folder / "step-000001", "was saved with no optimizer but AdamW is to be loaded");
}

TEST_CASE("random numbers go on where they were in the same world, and from seed, step and rank in another") {
  const TempDir folder;
  at::Tensor expected;
  on_ranks(1, [&](const World& world) {
    Trainee trainee(world, none());
    torch::manual_seed(42);
    torch::rand({10});
    trainee.save(folder.path(), 1);
    expected = torch::rand({10});
    torch::manual_seed(1);
    trainee.load(folder / "step-000001");
    CHECK(torch::rand({10}).equal(expected));
  });
  const auto state = Trainee::state(1);
  on_ranks(2, [&](const World& world) {
    Trainee trainee(world, ddp());
    trainee.load(folder / "step-000001");
    trainee.parallel.groups().world.barrier();
    // Ranks are threads with one generator here, so it is one of theirs.
    const auto seed = at::detail::getDefaultCPUGenerator().current_seed();
    const bool derived = seed == train::detail::derived_seed(state, 0) || seed == train::detail::derived_seed(state, 1);
    CHECK(derived);
  });
  CHECK(train::detail::derived_seed(state, 0) != train::detail::derived_seed(state, 1));
  CHECK(train::detail::derived_seed(state, 1) != train::detail::derived_seed(Trainee::state(2), 1));
  CHECK(train::detail::derived_seed(Trainee::state(2), 1) != train::detail::derived_seed(state, 2));
}

TEST_CASE("the last whole checkpoint is found; unfinished and strange folders are passed over") {
  const TempDir folder;
  CHECK(!latest_checkpoint(folder.path()));
  CHECK(!latest_checkpoint(folder / "missing"));
  for (const char* name : {"step-000002", "step-000010", "step-1000000"})
    write_file(folder / name / "index.json", "{}");
  for (const char* name : {"step-000011", "step-11111111"}) fs::create_directories(folder / name);
  for (const char* name :
       {"step-99", "step-x", "step-", "step--00001", "step-0000011", "other", "step-99999999999999999999"}) {
    write_file(folder / name / "index.json", "{}");
  }
  CHECK(latest_checkpoint(folder.path()) == folder / "step-1000000");
  CHECK(list_steps(folder.path()).size() == 5);
}

TEST_CASE("old checkpoints go when there are more than are kept, and unfinished ones go with the next save") {
  const TempDir folder;
  on_ranks(2, [&](const World& world) {
    Trainee trainee(world, fsdp());
    if (world.rank == 0) {
      write_file(folder / "step-000001" / "rank-00000.safetensors", "cut");
      write_file(folder / "step-000003" / "rank-00007.safetensors.tmp", "of a larger world");
      write_file(folder / "notes" / "index.json", "not ours");
    }
    for (std::int64_t step = 2; step <= 5; ++step) trainee.save(folder.path(), step, {.keep_last = 2});
  });
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) names.insert(entry.path().filename());
  CHECK(names == std::set<std::string>{"notes", "step-000004", "step-000005"});
  CHECK(std::distance(fs::directory_iterator(folder / "step-000005"), fs::directory_iterator()) == 4);
}

TEST_CASE("a whole checkpoint is never written over") {
  const TempDir folder;
  const auto path = make_checkpoint(folder.path());
  const auto message = refusal(path, [&](Trainee& trainee) { trainee.save(folder.path(), 3); });
  CHECK(message.find("step-000003 is a whole checkpoint already") != std::string::npos);
  CHECK(latest_checkpoint(folder.path()) == path);
}

TEST_CASE("a save in the background is of the moment it began, and is a checkpoint when it was waited for") {
  const TempDir folder;
  Trained then;
  on_ranks(2, [&](const World& world) {
    Trainee trainee(world, fsdp());
    trainee.train(0, 3);
    auto parameters = trainee.whole();
    auto state = trainee.whole_state();
    if (world.rank == 0) then = {{}, std::move(parameters), std::move(state), trainee.net->seen.clone()};
    auto save =
        save_checkpoint_async(folder.path(), *trainee.net, trainee.parallel, &trainee.optimizer, Trainee::state(3));
    trainee.train(3, 6);
    CHECK(!latest_checkpoint(folder.path()));
    trainee.parallel.groups().world.barrier();
    CHECK(save.wait() == folder / "step-000003");
    CHECK(latest_checkpoint(folder.path()) == folder / "step-000003");
    const auto forgotten =
        save_checkpoint_async(folder.path(), *trainee.net, trainee.parallel, &trainee.optimizer, Trainee::state(6));
  });
  CHECK(latest_checkpoint(folder.path()) == folder / "step-000003");
  const auto loaded = train_in({"ddp", 2, ddp()}, 3, 3, folder / "step-000003");
  check_equal(loaded.parameters, then.parameters);
  check_equal(loaded.state, then.state);
  CHECK(loaded.seen.equal(then.seen));
}

TEST_CASE("a rank that cannot write makes the save fail on every rank, and what was saved before stays") {
  const TempDir folder;
  on_ranks(3, [&](const World& world) {
    Trainee trainee(world, fsdp());
    trainee.save(folder.path(), 1);
    auto save = train::detail::start_save(folder.path(), *trainee.net, trainee.parallel, &trainee.optimizer,
                                          Trainee::state(2), {}, /*in_background=*/false);
    // In place of rank 1's file: a folder cannot be written to.
    if (world.rank == 0) fs::create_directories(folder / "step-000002" / "rank-00001.safetensors.tmp");
    trainee.parallel.groups().world.barrier();
    CHECK_THROWS_WITH(save.wait(), doctest::Contains("rank-00001.safetensors"));
    CHECK(latest_checkpoint(folder.path()) == folder / "step-000001");
    trainee.train(0, 1);
  });
}

TEST_CASE("a learning rate that is not finite fails the save on every rank, and what was saved before stays") {
  const TempDir folder;
  const auto before = make_checkpoint(folder.path());
  on_ranks(2, [&](const World& world) {
    Trainee trainee(world, fsdp());
    trainee.train(0, 1);
    static_cast<torch::optim::AdamWOptions&>(trainee.optimizer.param_groups()[1].options()).lr(std::nan(""));
    CHECK_THROWS_WITH(trainee.save(folder.path(), 4), doctest::Contains("the optimizer's lr is nan"));
  });
  CHECK(latest_checkpoint(folder.path()) == before);
}

TEST_CASE("a checkpoint of another model is refused with the names") {
  const TempDir folder;
  const auto path = make_checkpoint(folder.path());
  const auto edited = [&](const std::string& from, const std::string& to, const std::string& text) {
    const auto index = read_file(path / "index.json");
    edit_index(path, from, to);
    check_refused(path, text);
    write_file(path / "index.json", index);
  };
  edited("\"gain\": {", "\"pain\": {", "index.json has no such parameter");
  const auto other = refusal(path, [&](Trainee& trainee) {
    Shardable<Net> net;
    auto parallel = parallelize(*net, trainee.parallel.groups(), fsdp());
    load_checkpoint(path, *net, parallel, nullptr);
  });
  CHECK(other.find("Not in the model: seen") != std::string::npos);
  const auto lists = [&](auto change) {
    auto stored = read_index(path).parameters;
    const auto wanted = stored;
    change(stored);
    try {
      train::detail::check_same_tensors(stored, wanted, "here");
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string();
  };
  const auto more = "and " + std::to_string(Net()->parameters().size() - 10) + " more";
  CHECK(lists([](auto&) {}).empty());
  CHECK(lists([](auto& s) { s.erase("gain"); }).find("Not stored: gain.") != std::string::npos);
  CHECK(lists([](auto& s) { s["more"] = {}; }).find("Not in the model: more.") != std::string::npos);
  CHECK(lists([](auto& s) { s["gain"].dtype = "F64"; }).find("gain (stored F64 []") != std::string::npos);
  CHECK(lists([](auto& s) {
          s["tokens.weight"].shape = {12, 13};
        }).find("stored F32 [12, 13], the model has F32 [13, 12]") != std::string::npos);
  CHECK(lists([](auto& s) { s.clear(); }).find(more) != std::string::npos);
}

TEST_CASE("an optimizer of another kind or with other groups is refused") {
  const TempDir folder;
  const auto path = make_checkpoint(folder.path());
  const auto with = [&](auto make) {
    return refusal(path, [&](Trainee& trainee) {
      auto optimizer = make(trainee.parallel);
      load_checkpoint(path, *trainee.net, trainee.parallel, &optimizer);
    });
  };
  CHECK(with([](const Parallel& p) {
          return torch::optim::SGD(p.shards(), 0.1);
        }).find("was saved with AdamW but SGD is to be loaded") != std::string::npos);
  CHECK(with([](const Parallel& p) {
          return torch::optim::AdamW(p.shards());
        }).find("has 2 parameter groups but the optimizer has 1") != std::string::npos);
  CHECK(with([](const Parallel& p) {
          auto shards = p.shards();
          std::vector<at::Tensor> last = {shards.back()};
          shards.pop_back();
          return torch::optim::AdamW(
              {torch::optim::OptimizerParamGroup(shards), torch::optim::OptimizerParamGroup(last)});
        }).find("parameter group 0 holds") != std::string::npos);
  CHECK(with([](const Parallel& p) {
          return torch::optim::RMSprop(p.shards());
        }).find("checkpoints know the state of Adam, AdamW, SGD") != std::string::npos);
}

TEST_CASE("files that are missing, cut, changed or swapped are refused by name") {
  const TempDir folder;
  const auto path = make_checkpoint(folder.path());
  const auto file = path / "rank-00001.safetensors";
  const auto good = read_file(file);
  const auto with = [&](const std::string& content, const std::string& text) {
    write_file(file, content);
    check_refused(path, text);
    write_file(file, good);
  };
  with(good.substr(0, good.size() - 1), "rank-00001.safetensors has " + std::to_string(good.size() - 1) + " bytes");
  with(good + "x", "it was cut or replaced");
  with("", "rank-00001.safetensors has 0 bytes");
  auto flipped = good;
  flipped.back() ^= 1;  // a bit of an optimizer state or of a parameter: the header does not show it
  with(flipped, "rank-00001.safetensors has the SHA-256");
  auto renamed = good;
  renamed[renamed.find("model/") + 7] ^= 1;
  with(renamed, "rank-00001.safetensors");
  with(read_file(path / "rank-00000.safetensors"), "rank-00001.safetensors");
  fs::remove(file);
  check_refused(path, "rank-00001.safetensors: the file cannot be opened: No such file");
  fs::create_directories(file);
  check_refused(path, "rank-00001.safetensors is no regular file");
  fs::remove(file);
  write_file(file, good);
  fs::rename(path / "buffers.safetensors", path / "elsewhere");
  check_refused(path, "buffers.safetensors");
  fs::rename(path / "elsewhere", path / "buffers.safetensors");
  fs::rename(path / "index.json", path / "elsewhere");
  check_refused(path, "has no index.json, so it is no whole checkpoint");
}

TEST_CASE("an index that is damaged or made up is refused where it is wrong") {
  const TempDir folder;
  const auto path = make_checkpoint(folder.path());
  const auto index = read_file(path / "index.json");
  const auto with = [&](const std::string& from, const std::string& to, const std::string& text) {
    edit_index(path, from, to);
    check_refused(path, text);
    write_file(path / "index.json", index);
  };
  with("{", "", "does not parse");
  with("\"step\": 3", "\"step\": 3, \"step\": 4", "a key stands twice: 'step'");
  with("\"step\": 3", "\"step\": -3", "index.json.step is -3; expected a whole number");
  with("\"step\": 3", "\"steps\": 3", "index.json has no step");
  with("\"version\": 1", "\"version\": 2", "expected format sealift.checkpoint, version 1");
  with("\"shard\": 2", "\"shard\": 3", "lists 3 files; expected 4");
  with("\"shard\": 2", "\"shard\": 0", "mesh is 1x0");
  with("\"shard\": 2", "\"shard\": 4611686018427387904", "mesh is 1x4611686018427387904");
  with("rank-00001.safetensors", "../../../etc/passwd", "file 1 is called ../../../etc/passwd; expected rank-00001");
  with("\"sha256\": \"", "\"sha256\": \"g", "expected 64 hexadecimal digits");
  with("\"dtype\": \"F32\"", "\"dtype\": \"F99\"", "'F99'");
  with("\"weight_decay\": 0.1", "\"weight_decay\": null", "weight_decay is no number");
  with("\"weight_decay\": 0.1", "\"decay\": 0.1", "does not have the hyper-parameters of AdamW");
  with("\"kind\": \"AdamW\"", "\"kind\": 1", "optimizer.kind is no text");
  auto shape = index.find("\"shape\": [", index.rfind("tokens.weight"));
  auto text = index;
  text.insert(shape + 10, "4294967296, 4294967296, ");
  write_file(path / "index.json", text);
  check_refused(path, "more bits than 64");
  write_file(path / "index.json", std::string("[") + std::string(100000, '['));
  check_refused(path, "nested deeper than 8");
}

TEST_CASE("rank files that say what cannot be are refused, even under a right digest") {
  const TempDir folder;
  const auto path = make_checkpoint(folder.path(), 1);
  const auto original = read_file(path / "index.json");
  const auto name = path / rank_file(0);
  const auto entries = [&] {
    TensorList tensors;
    const InputFile file(name);
    const auto header = read_header(file);
    for (const auto& entry : header.tensors) {
      auto tensor = torch::empty({static_cast<std::int64_t>(entry.shape[0])}, scalar_type(entry.dtype, ""));
      file.read(header.data_begin + entry.begin, tensor.mutable_data_ptr(), entry.bytes());
      tensors.emplace_back(entry.name, tensor);
    }
    return std::pair(tensors, header.metadata);
  }();
  const auto with = [&](auto change, const std::string& text) {
    auto [tensors, metadata] = entries;
    change(tensors, metadata);
    const auto written = write_tensor_file(name, tensors, metadata);
    write_file(path / "index.json", original);
    auto index = read_index(path);
    index.files[0] = written;
    write_file(path / "index.json", write_index(index));
    CAPTURE(text);
    check_refused(path, text);
  };
  const auto tensor = [](TensorList& tensors, const std::string& key) -> at::Tensor& {
    for (auto& [entry, value] : tensors) {
      if (entry == key) return value;
    }
    throw std::logic_error("no " + key);
  };
  const auto drop = [](TensorList& tensors, const std::string& key) {
    std::erase_if(tensors, [&](const auto& entry) { return entry.first == key; });
  };
  with([&](auto& t, auto&) { drop(t, "model/gain"); }, "gain is in no file");
  with([&](auto& t, auto&) { drop(t, "optimizer/exp_avg/tokens.weight"); }, "has no exp_avg, which AdamW needs");
  with([&](auto&, auto& m) { m.erase("first/gain"); }, "has no first/gain in its metadata");
  with([&](auto&, auto& m) { m["first/gain"] = "-1"; }, "first/gain is '-1'");
  with([&](auto&, auto& m) { m["first/gain"] = "0x"; }, "first/gain is '0x'");
  with([&](auto&, auto& m) { m["first/gain"] = "1"; }, "gain has elements up to 1 + 1 of a parameter of 1");
  with([&](auto&, auto& m) { m["step/gain"] = "99999999999999999999"; }, "step/gain is '9");
  with([&](auto& t, auto&) { tensor(t, "model/tokens.weight") = torch::zeros({155}); },
       "elements 155 to 156 of model/tokens.weight are in no file");
  with([&](auto& t, auto&) { tensor(t, "model/tokens.weight") = torch::zeros({157}); }, "elements up to 0 + 157");
  with([&](auto& t, auto&) { tensor(t, "model/tokens.weight") = torch::zeros({13, 12}); }, "has 2 dimensions");
  with([&](auto& t, auto&) { tensor(t, "model/gain") = torch::zeros({1}, torch::kFloat64); }, "has dtype F64");
  with([&](auto& t, auto&) { t.emplace_back("model/other", torch::zeros({1})); }, "index.json has no such parameter");
  with([&](auto& t, auto&) { t.emplace_back("other", torch::zeros({1})); }, "is nothing that a checkpoint has");
  with([&](auto& t, auto&) { t.emplace_back("optimizer/x", torch::zeros({1})); }, "is nothing that a checkpoint has");
  with([&](auto& t, auto&) { t.emplace_back("rng/x", torch::zeros({1})); }, "is no generator's state");
}

TEST_CASE("two files that hold the same element are refused") {
  const TempDir folder;
  const auto path = make_checkpoint(folder.path());
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    const auto written =
        write_tensor_file(path / rank_file(rank), {{"model/gain", torch::zeros({1})}}, {{"first/gain", "0"}});
    auto index = read_index(path);
    index.files[static_cast<std::size_t>(rank)] = written;
    write_file(path / "index.json", write_index(index));
  }
  check_refused(path, "both hold element 0 of model/gain");
}
