// SPDX-License-Identifier: Apache-2.0
// launch.hpp and collectives.hpp: from variables to a place in the world, and what its collectives count.
// Environments are maps, so no case depends on the environment of the test.
// rendezvous_test.cpp is about what ranks do at the store.
#include "tests/support/ranks.hpp"

#include <sealift/train/launch/rendezvous.hpp>

#include <doctest/doctest.h>

#include <map>

using namespace sealift::train;

namespace {

using Variables = std::map<std::string, std::string>;

Launch parse(const Variables& variables) {
  return parse_launch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const Variables kTorchrun = {{"RANK", "1"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "127.0.0.1"},
                             {"MASTER_PORT", "29500"}};

const Variables kMaster = {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "4000"}};

/// As `srun -N 4 -n 7` sets them on the third host.
const Variables kSrun = {{"SLURM_JOB_ID", "1234"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_STEP_NUM_TASKS", "7"},
                         {"SLURM_STEP_NUM_NODES", "4"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                         {"SLURM_STEP_NODELIST", "node[01-03,7]"},
                         {"SLURM_NODEID", "2"},
                         {"SLURM_PROCID", "5"},
                         {"SLURM_LOCALID", "1"}};

const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_NAMESPACE", "prterun-1"}};

/// The variables of `one`, and of `other` where it has none.
Variables operator+(Variables one, const Variables& other) {
  one.insert(other.begin(), other.end());
  return one;
}

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

}  // namespace

TEST_CASE("no variables mean one process") {
  const auto launch = parse({});
  CHECK(launch.world_size == 1);
  CHECK(launch.rank == 0);
  CHECK_FALSE(launch.is_node);
  CHECK(launch.source == "single process (no launcher's variables are set)");
  CHECK(connect(launch).size == 1);
}

TEST_CASE("every launcher is recognised by its own variables, and the nearest one wins") {
  struct Row {
    const char* name;
    Variables variables;
    std::int64_t rank, world_size, local_rank, local_world_size;
    bool is_node;
    std::string address;
    std::int64_t port;  ///< -1: made from the job's name
    std::string says;
  };
  const Variables pet = {{"PET_NNODES", "2"}, {"PET_NODE_RANK", "1"}, {"PET_NPROC_PER_NODE", "auto"}};
  const Variables pet_master = {{"PET_MASTER_ADDR", "job-0-0.job"}, {"PET_MASTER_PORT", "29400"}};
  const Variables pod = {{"RANK", "1"}, {"WORLD_SIZE", "2"}};
  const Variables swift = {{"NNODES", "2"}, {"NODE_RANK", "1"}, {"NPROC_PER_NODE", "8"}, {"MASTER_ADDR", "10.0.0.1"}};
  const Variables hydra = {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}};
  const std::vector<Row> rows = {
      {"torchrun", with(kTorchrun, "TORCHELASTIC_RUN_ID", "x"), 1, 4, 1, 2, false, "127.0.0.1", 29500, "(torchrun: "},
      {"torchrun in srun", kTorchrun + kSrun + kOpenMpi + swift + pet, 1, 4, 1, 2, false, "127.0.0.1", 29500, "RANK"},
      {"by hand on one host",
       {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "1"}},
       1,
       2,
       1,
       2,
       false,
       "localhost",
       1,
       "rank 1 of 2, store at localhost:1"},
      {"PyTorchJob, one process per pod", pod + kMaster, 1, 2, 0, 1, false, "10.0.0.1", 4000, "(RANK: WORLD_SIZE RANK"},
      {"PyTorchJob, nprocPerNode auto", pet + pod + kMaster, 1, 2, 0, 1, false, "10.0.0.1", 4000, "a Kubeflow job"},
      {"PyTorchJob, auto, and how many", with(pet + pod + kMaster, "NPROC_PER_NODE", "8"), 8, 16, 0, 8, true,
       "10.0.0.1", 4000, "the host of ranks 8 to 15 of 16, store at 10.0.0.1:4000"},
      {"PyTorchJob, nprocPerNode 4: WORLD_SIZE counts processes, RANK pods",
       Variables{{"PET_NPROC_PER_NODE", "4"}, {"WORLD_SIZE", "8"}} + pet + pod + kMaster, 4, 8, 0, 4, true, "10.0.0.1",
       4000, "PET_NPROC_PER_NODE"},
      {"TrainJob", with(pet + pet_master, "PET_NPROC_PER_NODE", "2"), 2, 4, 0, 2, true, "job-0-0.job", 29400,
       "PET_MASTER_ADDR"},
      {"TrainJob of one pod", {{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "2"}}, 0, 2, 0, 2, true, "127.0.0.1", 0, ""},
      {"PAI-DLC", with(pod + kMaster, "NPROC_PER_NODE", "8"), 8, 16, 0, 8, true, "10.0.0.1", 4000, "PAI-DLC"},
      {"PAI-DLC with one GPU per host", with(pod + kMaster, "NPROC_PER_NODE", "1"), 1, 2, 0, 1, false, "10.0.0.1", 4000,
       "PAI-DLC"},
      {"ms-swift", swift, 8, 16, 0, 8, true, "10.0.0.1", 29500, "NNODES NODE_RANK NPROC_PER_NODE MASTER_ADDR)"},
      {"ms-swift in srun", swift + kSrun, 8, 16, 0, 8, true, "10.0.0.1", 29500, "ms-swift"},
      {"ms-swift on one host", {{"NPROC_PER_NODE", "4"}}, 0, 4, 0, 4, true, "127.0.0.1", 0, "ranks 0 to 3 of 4 (NPROC"},
      {"ms-swift, one rank", {{"NNODES", "1"}}, 0, 1, 0, 1, false, "127.0.0.1", 0, "rank 0 of 1"},
      {"Open MPI on one host", with(kOpenMpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "4"), 3, 4, 1, 4, false, "127.0.0.1", -1,
       "mpirun of Open MPI"},
      {"Open MPI on two hosts", kOpenMpi + kMaster, 3, 4, 1, 2, false, "10.0.0.1", 4000, "OMPI_COMM_WORLD_SIZE"},
      {"Open MPI in srun", kOpenMpi + kMaster + kSrun, 3, 4, 1, 2, false, "10.0.0.1", 4000, "mpirun"},
      {"MPICH", hydra + kMaster, 2, 4, 0, 2, false, "10.0.0.1", 4000, "mpirun of MPICH"},
      {"srun", kSrun, 5, 7, 1, 2, false, "node01", -1, "(srun: "},
      {"srun, last host", with(with(with(kSrun, "SLURM_NODEID", "3"), "SLURM_PROCID", "6"), "SLURM_LOCALID", "0"), 6, 7,
       0, 1, false, "node01", -1, ""},
      {"srun with a master", kSrun + kMaster, 5, 7, 1, 2, false, "10.0.0.1", 4000, "MASTER_ADDR"},
      {"srun --mpi=pmi2", with(with(kSrun, "PMI_RANK", "5"), "PMI_SIZE", "7"), 5, 7, 1, 2, false, "node01", -1, "srun"},
      {"srun on one host",
       {{"SLURM_JOB_ID", "9"},
        {"SLURM_STEP_ID", "1"},
        {"SLURM_NTASKS", "2"},
        {"SLURM_NNODES", "1"},
        {"SLURM_PROCID", "1"},
        {"SLURM_LOCALID", "1"}},
       1,
       2,
       1,
       2,
       false,
       "127.0.0.1",
       -1,
       "SLURM_NTASKS"},
      {"the shell of sbatch is no rank", with(kSrun, "SLURM_STEP_ID", "4294967291"), 0, 1, 0, 1, false, "", 0,
       "single"},
      {"the shell of salloc is no rank", without(kSrun, "SLURM_STEP_ID"), 0, 1, 0, 1, false, "", 0, "single process"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.name);
    const auto launch = parse(row.variables);
    CHECK(launch.rank == row.rank);
    CHECK(launch.world_size == row.world_size);
    CHECK(launch.local_rank == row.local_rank);
    CHECK(launch.local_world_size == row.local_world_size);
    CHECK(launch.is_node == row.is_node);
    CHECK(launch.master_addr == row.address);
    if (row.port >= 0) CHECK(launch.master_port == row.port);
    if (row.port < 0) CHECK((launch.master_port >= 15000 && launch.master_port < 25000));
    CHECK_FALSE(launch.agent_store);
    CHECK_MESSAGE(launch.source.find(row.says) != std::string::npos, launch.source);
  }
}

TEST_CASE("torchrun's store, attempt and Gloo's interface are read") {
  CHECK(parse(with(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE", "True")).agent_store);
  CHECK_FALSE(parse(with(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE", "False")).agent_store);
  CHECK(parse(with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "2")).attempt == "2");
  CHECK(parse(without(kTorchrun, "LOCAL_RANK")).local_rank == 1);
  CHECK(parse(without(kTorchrun, "LOCAL_WORLD_SIZE")).local_world_size == 4);
  CHECK(parse(with(kTorchrun, "GLOO_SOCKET_IFNAME", "eth1,eth2")).interface == "eth1,eth2");
}

TEST_CASE("an interface in NCCL's form is refused by name where ranks meet, and is nothing to a process alone") {
  for (const char* text : {"^docker0", "^docker0,lo", "=eth0", "eth0,^lo", "eth0,", ",eth0"}) {
    CAPTURE(text);
    // A program that sealift-launch starts may never ask Gloo, so this is refused where ranks meet.
    const auto launch = parse(with(kTorchrun, "GLOO_SOCKET_IFNAME", text));
    CHECK(launch.interface == text);
    CHECK_THROWS_WITH(connect(launch, std::chrono::seconds(5)),
                      doctest::Contains(c10::str("GLOO_SOCKET_IFNAME is '", text, "'; expected names").c_str()));
    CHECK(parse({{"GLOO_SOCKET_IFNAME", text}}).interface.empty());
  }
  CHECK(parse(with(kTorchrun, "GLOO_SOCKET_IFNAME", "")).interface.empty());
}

TEST_CASE("an IPv6 address may stand in brackets, and what is more than an address is refused with its cause") {
  CHECK(parse(with(kTorchrun, "MASTER_ADDR", "[fd94::1]")).master_addr == "fd94::1");
  CHECK(parse(with(kTorchrun, "MASTER_ADDR", "fe80::1%eth0")).master_addr == "fe80::1%eth0");
  CHECK(parse(with(without(kTorchrun, "LOCAL_RANK"), "MASTER_ADDR", "[::1]")).local_rank == 1);
  CHECK(parse(with(kSrun, "MASTER_ADDR", "[fd94::1]")).master_addr == "fd94::1");
  CHECK(parse(with(kOpenMpi, "MASTER_ADDR", "[fd94::1]")).master_addr == "fd94::1");
  const Variables node = {{"NNODES", "2"}, {"NODE_RANK", "1"}};
  CHECK(parse(with(node, "MASTER_ADDR", "[fd94::1]")).master_addr == "fd94::1");
  struct Row {
    const char *address, *says;
  };
  for (const Row& row : {Row{"10.0.0.1:29500", "with a port"}, Row{"[fd94::1]:29500", "with a port"},
                         Row{"tcp://10.0.0.1:29500", "an address of a service"}, Row{"10.0.0.1/24", "not one address"},
                         Row{"host1,host2", "not one address"}, Row{"host1 ", "not one address"},
                         Row{"[host1]", "with brackets that hold no IPv6 address"},
                         Row{"[fd94::1", "with brackets that hold no IPv6 address"}}) {
    CAPTURE(row.address);
    const auto says = c10::str("MASTER_ADDR is '", row.address, "', ", row.says);
    CHECK_THROWS_WITH(parse(with(kTorchrun, "MASTER_ADDR", row.address)), doctest::Contains(says.c_str()));
    CHECK_THROWS_WITH(parse(with(node, "MASTER_ADDR", row.address)), doctest::Contains(says.c_str()));
  }
  for (const char* any : {"0.0.0.0", "::", "[::]"}) {
    CHECK_THROWS_WITH(parse(with(kTorchrun, "MASTER_ADDR", any)),
                      doctest::Contains("which each host takes for itself"));
    CHECK(parse(with(with(kTorchrun, "MASTER_ADDR", any), "LOCAL_WORLD_SIZE", "4")).world_size == 4);
  }
}

TEST_CASE("a port that Kubernetes made of a service is named as that") {
  const std::string link = "tcp://10.0.0.1:29500";
  for (const auto& variables : {kTorchrun, kSrun + kMaster, kOpenMpi + kMaster}) {
    CHECK_THROWS_WITH(
        parse(with(variables, "MASTER_PORT", link)),
        doctest::Contains("MASTER_PORT is 'tcp://10.0.0.1:29500', which Kubernetes sets in each pod beside "
                          "a service of that name ('master')"));
  }
  const Variables pet = {{"PET_NNODES", "2"}, {"PET_NODE_RANK", "1"}, {"PET_MASTER_ADDR", "a"}};
  CHECK_THROWS_WITH(parse(with(pet, "PET_MASTER_PORT", link)), doctest::Contains("('pet-master')"));
}

TEST_CASE("a task of a launcher whose variables are not read is refused by its name, unless it is the only one") {
  struct Row {
    const char* launcher;
    Variables variables;
    bool counts;  ///< it says how many tasks there are, in the second variable
  };
  const std::vector<Row> rows = {
      {"flux run", {{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "2"}}, true},
      {"PALS", {{"PALS_RANKID", "0"}}, false},
      {"ALPS", {{"ALPS_APP_PE", "3"}}, false},
      {"jsrun", {{"JSM_NAMESPACE_RANK", "0"}, {"JSM_NAMESPACE_SIZE", "6"}}, true},
      {"an indexed job of Kubernetes", {{"JOB_COMPLETION_INDEX", "0"}}, false},
      {"LeaderWorkerSet", {{"LWS_WORKER_INDEX", "1"}, {"LWS_GROUP_SIZE", "4"}}, true},
      {"ModelArts", {{"VC_TASK_INDEX", "1"}, {"VC_WORKER_NUM", "2"}}, true},
      {"SageMaker", {{"SM_CURRENT_HOST", "algo-1"}, {"SM_HOSTS", R"(["algo-1","algo-2"])"}}, true},
      {"AWS Batch", {{"AWS_BATCH_JOB_NODE_INDEX", "0"}, {"AWS_BATCH_JOB_NUM_NODES", "2"}}, true},
      {"SkyPilot", {{"SKYPILOT_NODE_RANK", "0"}, {"SKYPILOT_NUM_NODES", "2"}}, true},
      {"dstack", {{"DSTACK_NODE_RANK", "0"}, {"DSTACK_NODES_NUM", "2"}}, true},
      {"HTCondor", {{"_CONDOR_PROCNO", "0"}, {"_CONDOR_NPROCS", "2"}}, true},
  };
  for (const auto& row : rows) {
    CAPTURE(row.launcher);
    CHECK_THROWS_WITH(parse(row.variables), doctest::Contains(row.launcher));
    CHECK_THROWS_WITH(parse(row.variables), doctest::Contains("give each its RANK, and all of them WORLD_SIZE"));
    // NPROC_PER_NODE counts the ranks of this host alone.
    CHECK_THROWS_WITH(parse(with(row.variables, "NPROC_PER_NODE", "4")), doctest::Contains(row.launcher));
    CHECK(parse(row.variables + kTorchrun).world_size == 4);
    CHECK(parse(row.variables + kSrun).world_size == 7);
    if (!row.counts) continue;
    for (auto variables : {row.variables}) {
      for (auto& [name, value] : variables) {
        if (name.find("SIZE") != name.npos || name.find("NUM") != name.npos || name.find("NPROCS") != name.npos)
          value = "1";
        if (name == "SM_HOSTS") value = R"(["algo-1"])";
      }
      CHECK(parse(variables).world_size == 1);
    }
  }
  CHECK(parse({{"FLUX_TASK_RANK", ""}}).world_size == 1);
}

TEST_CASE("all ranks of a job find the same port, and another job or step another one") {
  const auto port = [](const Variables& variables) { return parse(variables).master_port; };
  CHECK(port(kSrun) == port(with(kSrun, "SLURM_PROCID", "4")));
  CHECK(port(kSrun) != port(with(kSrun, "SLURM_STEP_ID", "1")));
  CHECK(port(kSrun) != port(with(kSrun, "SLURM_JOB_ID", "1235")));
}

TEST_CASE("Slurm's short forms are read") {
  CHECK(launchers::first_host("node[01-03,7],gpu5") == "node01");
  CHECK(launchers::first_host("gpu5,node[01-03]") == "gpu5");
  CHECK(launchers::first_host("node[7,9]") == "node7");
  CHECK(launchers::first_host("rack[1-2]-node[08-10].site,x") == "rack1-node08.site");
  for (const char* bad : {"node[01", "node[]", "node[,1]"}) {
    CHECK_THROWS_WITH(launchers::first_host(bad), doctest::Contains("set MASTER_ADDR"));
  }
  CHECK(launchers::count_at("2(x3),1", 0) == 2);
  CHECK(launchers::count_at("2(x3),1", 2) == 2);
  CHECK(launchers::count_at("2(x3),1", 3) == 1);
  CHECK(launchers::count_at("1,3(x2)", 2) == 3);
  CHECK(launchers::count_at("8", 0) == 8);
  CHECK_FALSE(launchers::count_at("2(x3),1", 4));
  for (const char* bad : {"", "x", "2(3)", "2(x)", "0", "-1(x2)"}) CHECK_FALSE(launchers::count_at(bad, 0));
}

TEST_CASE("incomplete or impossible variables are refused by name and value") {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH(parse(without(kTorchrun, name)), doctest::Contains(name));
    CHECK_THROWS_WITH(parse(with(kTorchrun, name, "")), doctest::Contains(name));
  }
  struct Row {
    Variables variables;
    const char* says;
  };
  const std::vector<Row> rows = {
      {with(kTorchrun, "RANK", "4"), "RANK is '4'; expected a whole number from 0 to 3"},
      {with(kTorchrun, "RANK", "-1"), "RANK is '-1'"},
      {with(kTorchrun, "WORLD_SIZE", "two"), "WORLD_SIZE is 'two'"},
      {with(kTorchrun, "WORLD_SIZE", "0"), "WORLD_SIZE is '0'"},
      {with(kTorchrun, "WORLD_SIZE", "99999999999999999999"), "WORLD_SIZE is '99999999999999999999'"},
      {with(kTorchrun, "LOCAL_RANK", "2"), "LOCAL_RANK is '2'; expected a whole number from 0 to 1"},
      {with(kTorchrun, "MASTER_PORT", "65536"), "MASTER_PORT is '65536'"},
      {with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "x"), "TORCHELASTIC_RESTART_COUNT is 'x'"},
      {with(kTorchrun, "MASTER_PORT", "80 "), "MASTER_PORT is '80 '"},
      {{{"NNODES", "2"}}, "NNODES as for ms-swift was found, but NODE_RANK is not set; set NNODES, NODE_RANK"},
      {{{"NNODES", "2"}, {"NODE_RANK", "2"}}, "NODE_RANK is '2'; expected a whole number from 0 to 1"},
      {{{"NNODES", "2"}, {"NODE_RANK", "0"}}, "MASTER_ADDR is not set"},
      {{{"NNODES", "2"}, {"NODE_RANK", "0"}, {"NPROC_PER_NODE", "0"}}, "NPROC_PER_NODE is '0'"},
      {{{"NODE_RANK", "1"}}, "NODE_RANK is set, but neither"},
      {{{"NODE_RANK", "1"}, {"NPROC_PER_NODE", "2"}}, "NODE_RANK is set but NNODES is not"},
      {{{"PET_NNODES", "1:4"}}, "an elastic job has to go through torchrun --no-python"},
      {{{"PET_NNODES", "2"}, {"PET_NODE_RANK", "0"}, {"PET_NPROC_PER_NODE", "auto"}},
       "PET_NPROC_PER_NODE is 'auto'; expected a whole number from 1 to 1024 (a Kubeflow job: set NPROC_PER_NODE"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"NPROC_PER_NODE", "8"}}, "or unset NPROC_PER_NODE if RANK counts"},
      {kOpenMpi, "MASTER_ADDR is not set; say where rank 0 runs: mpirun -x MASTER_ADDR=ADDRESS"},
      {with(kOpenMpi, "OMPI_COMM_WORLD_RANK", "4"), "OMPI_COMM_WORLD_RANK is '4'"},
      {without(kOpenMpi, "OMPI_COMM_WORLD_SIZE"), "OMPI_COMM_WORLD_SIZE is not set"},
      {with(kSrun, "SLURM_PROCID", "7"), "SLURM_PROCID is '7'; expected a whole number from 0 to 6"},
      {without(kSrun, "SLURM_LOCALID"), "srun was found, but SLURM_LOCALID is not set"},
      {with(kSrun, "SLURM_STEP_NODELIST", "node[01-"), "Slurm's node list is 'node[01-'"},
      {without(kSrun, "SLURM_STEP_NODELIST"), "SLURM_JOB_NODELIST is not set"},
      {{{"PMIX_RANK", "0"}}, "PMIX_RANK is set, but neither RANK nor another launcher's variables"},
      {{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, "PMI_RANK is set, but neither"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.says);
    CHECK_THROWS_WITH(parse(row.variables), doctest::Contains(row.says));
  }
}

TEST_CASE("collectives compute what their names say and count what a ring would send, over 3 ranks") {
  sealift::test::on_ranks(3, [](const World& world) {
    auto groups = make_groups(world, {1, 3});
    const auto mine = torch::full({2}, static_cast<float>(world.rank));
    auto whole = torch::empty({6});
    groups.shard.all_gather(whole, mine).wait();
    CHECK(whole.equal(torch::tensor({0.f, 0.f, 1.f, 1.f, 2.f, 2.f})));
    auto part = torch::empty({2});
    groups.shard.reduce_scatter(part, whole).wait();
    CHECK(part.equal(torch::full({2}, 3.f * static_cast<float>(world.rank))));
    groups.world.all_reduce(part).wait();
    CHECK(part.equal(torch::full({2}, 9.f)));
    auto given = torch::full({3}, static_cast<float>(world.rank + 7));
    groups.world.broadcast(given).wait();
    CHECK(given.equal(torch::full({3}, 7.f)));
    groups.world.barrier();
    CHECK(groups.traffic->all_gather == Traffic{1, 16});
    CHECK(groups.traffic->reduce_scatter == Traffic{1, 16});
    CHECK(groups.traffic->all_reduce == Traffic{1, 16});  // few bytes go to everyone: 8 to each of 2
    CHECK(groups.traffic->broadcast == Traffic{1, 8});
  });
}

TEST_CASE("a group of one does nothing and counts nothing") {
  auto groups = make_groups({}, {});
  auto value = torch::ones({2});
  groups.world.all_reduce(value).wait();
  groups.shard.all_gather(value, value).wait();
  groups.replicate.reduce_scatter(value, value).wait();
  groups.world.barrier();
  CHECK(value.equal(torch::ones({2})));
  CHECK(*groups.traffic == TrafficReport{});
}

TEST_CASE("a mesh connects its rows and its columns, over 4 ranks; another size is refused") {
  sealift::test::on_ranks(4, [](const World& world) {
    auto groups = make_groups(world, {2, 2});
    auto row = torch::full({1}, static_cast<float>(world.rank)), column = row.clone();
    groups.shard.all_reduce(row).wait();
    groups.replicate.all_reduce(column).wait();
    CHECK(row.item<float>() == (world.rank < 2 ? 1 : 5));
    CHECK(column.item<float>() == (world.rank % 2 == 0 ? 2 : 4));
  });
  CHECK_THROWS_WITH(make_groups({}, {2, 2}), doctest::Contains("mesh replicate 2 x shard 2 in a world of 1 ranks"));
}

TEST_CASE("a rank that does not come is given up on after the timeout") {
  CHECK_THROWS(sealift::test::on_ranks(
      2,
      [](const World& world) {
        auto groups = make_groups(world, {2, 1});
        auto value = torch::ones({1});
        if (world.rank == 0) groups.world.all_reduce(value).wait();
      },
      std::chrono::milliseconds(500)));
}
