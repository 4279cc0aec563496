// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes over the engine of their device: two, three and four of them on one card over NCCL
// (gpu_test), or on the CPU over Gloo (processes_test), so that the cases are known to run where there is no card.
// Groups and their splits, codecs, offload, accumulation, checkpoints, drawn settings, and ranks that die or hang.
#include "tests/support/process_ranks.hpp"
#include "tests/train/gpu/jobs.hpp"
#include "tests/train/property/compare.hpp"

using namespace sealift::test;

namespace {

using Clock = std::chrono::steady_clock;

/// `world` with a part of the store for its `number`th use.
World renewed(World world, std::int64_t number) {
  world.store = c10::make_intrusive<c10d::PrefixStore>("use" + std::to_string(number), world.store);
  return world;
}

/// bf16 has 8 bits; a card sums in another order.
double allowed(const GpuJob& job) {
  return job.is_fp32() ? 1e-4 : 2e-2;
}

/// Steps of one all-reduce each; in the third `victim` does `fate` to itself. The others must be told who it was.
void lose_a_rank(const World& world, int fate, std::chrono::milliseconds within, const std::string& what) {
  const auto groups = make_groups(world, {1, world.size});
  auto group = groups.shard;
  auto values = torch::ones({100'000}, world.device);
  auto began = Clock::now();
  std::string said;
  try {
    for (std::int64_t step = 0; step < 6; ++step) {
      groups.set_step(step);
      if (step == 3) began = Clock::now();
      if (step == 3 && world.rank == 1) raise(fate);
      group.all_reduce(values, "layer1").wait();
      values.sum().item<float>();  // the host learns of it when it asks for a number
    }
    group.all_reduce(values, "after").wait();
  } catch (const std::exception& error) {
    said = error.what();
  }
  INFO(said);
  CHECK(said.find(what) != std::string::npos);
  CHECK(Clock::now() - began < within);
}

}  // namespace

TEST_CASE("processes train as one process on the CPU does") {
  for (const std::int64_t ranks : {2, 3, 4}) {
    on_processes(ranks, [](const World& world) {
      std::int64_t number = 0;
      for (const auto& job : gpu_jobs(world.size)) {
        CAPTURE(job.name);
        check_near(run_job(renewed(world, ++number), job), job_on_one_cpu(), allowed(job));
      }
    });
  }
}

TEST_CASE("groups of processes and their splits sum over their ranks in each dtype") {
  for (const auto& mesh : {Mesh{1, 2}, Mesh{1, 3}, Mesh{2, 2}}) {
    on_processes(mesh.world_size(), [mesh](const World& world) {
      const auto groups = make_groups(world, mesh);
      for (auto group : {groups.world, groups.shard, groups.replicate}) {
        if (group.size() == 1) continue;  // where nothing is done
        const auto members = group.members();
        double sum = 0;
        for (const auto member : members) sum += static_cast<double>(member);
        const auto place = std::find(members.begin(), members.end(), world.rank) - members.begin();
        for (const auto dtype : {at::kFloat, at::kHalf, at::kBFloat16, at::kLong}) {
          for (const std::int64_t n : {0, 1, 1237, 100'000}) {
            CAPTURE(n);
            const auto options = at::TensorOptions(world.device).dtype(dtype);
            auto values = torch::full({n}, world.rank, options);
            group.all_reduce(values, "unit").wait();
            CHECK(values.equal(torch::full({n}, sum, options)));
            auto part = torch::empty({n}, options);
            group.reduce_scatter(part, torch::full({n * group.size()}, 2, options), "unit").wait();
            CHECK(part.equal(torch::full({n}, 2 * group.size(), options)));
            auto whole = torch::zeros({n * group.size()}, options);
            group.all_gather(whole, torch::full({n}, place + 1, options), "unit").wait();
            for (std::int64_t peer = 0; peer < group.size(); ++peer)
              CHECK(whole.narrow(0, peer * n, n).equal(torch::full({n}, peer + 1, options)));
          }
        }
      }
      auto on_cpu = torch::ones({3});
      auto all = groups.world;
      all.all_reduce(on_cpu).wait();
      CHECK(on_cpu.equal(torch::full({3}, static_cast<float>(world.size))));
    });
  }
}

TEST_CASE("a checkpoint of processes is what one process on the CPU loads") {
  on_processes(3, [](const World& world) {
    const auto folder = std::filesystem::temp_directory_path() /
                        ("sealift-test-checkpoint-" + std::to_string(process::number_of("SEALIFT_TEST_PORT", 0)));
    const Policy fsdp{.method = ParallelMethod::Fsdp};
    auto groups = make_groups(world, make_mesh(fsdp, world.size));
    Shardable<GpuNet> net(false, nullptr);
    net->to(world.device);
    auto parallel = parallelize(*net, groups, fsdp);
    FusedAdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2));
    const auto ids = torch::arange(6, at::TensorOptions(at::kLong)).to(world.device);
    net(ids).sum().backward();
    optimizer.step();
    save_checkpoint(folder, *net, parallel, &optimizer, {.step = 1});
    const auto whole = parallel.gather_parameters();
    if (world.rank == 0) {
      Shardable<GpuNet> loaded(false, nullptr);
      const Policy none{.method = ParallelMethod::None};
      auto alone = parallelize(*loaded, make_groups({}, {1, 1}), none);
      FusedAdamW other(alone.shards(), torch::optim::AdamWOptions(1e-2));
      load_checkpoint(*latest_checkpoint(folder), *loaded, alone, &other);
      for (const auto& item : net->named_parameters())
        CHECK(item.value().cpu().equal(loaded->named_parameters()[item.key()]));
    }
    auto all = groups.world;
    all.barrier();
    if (world.rank == 0) std::filesystem::remove_all(folder);
  });
}

TEST_CASE("drawn settings train in processes as one process does") {
  const auto* drawn = std::getenv("SEALIFT_PROPERTY_DRAWS");
  const auto count = drawn ? std::stoull(drawn) : 12;
  for (const std::int64_t ranks : {2, 3, 4}) {
    on_processes(ranks, [count](const World& world) {
      const property::Hardware hardware{.device = process_device};
      std::int64_t number = 0;
      for (std::uint64_t index = 1000; number < static_cast<std::int64_t>(count); ++index) {
        const auto c = property::draw(15, index);
        if (c.number(property::kRanks) != world.size || c.to_be_refused() || c.may_be_refused()) continue;
        CAPTURE(c.line());
        bool accepted = false;
        const auto mine = property::train_rank(c, renewed(world, ++number), hardware, accepted);
        const auto verdict = property::judge_share(c, mine, world.rank, world.size);
        CHECK_MESSAGE(verdict.failure.empty(), verdict.failure);
      }
    });
  }
}

TEST_CASE("a process that is killed is named by the others within three seconds") {
  on_processes(3,
               [](const World& world) { lose_a_rank(world, SIGKILL, std::chrono::seconds(3), "no word from rank 1"); },
               std::chrono::seconds(60), {.fate = Victim::Fate::Killed});
}

TEST_CASE("a process that hangs is named by the others within the timeout") {
  const auto kTimeout = std::chrono::seconds(3);
  on_processes(3,
               [kTimeout](const World& world) {
                 lose_a_rank(world, SIGSTOP, kTimeout + std::chrono::seconds(2), "rank 1 did not come");
               },
               kTimeout, {.fate = Victim::Fate::Stopped});
}
