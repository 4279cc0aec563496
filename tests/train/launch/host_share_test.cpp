// SPDX-License-Identifier: Apache-2.0
// host_share.hpp and control_groups.hpp: what a process may use of its host, read in trees that the test makes.
// A tree is what the kernel shows of /proc and /sys/fs/cgroup in a container, a Slurm job or a service.
#include <sealift/train/launch/host_share.hpp>

#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace sealift::train;
using sealift::test::TempDir;

namespace {

struct Files : std::map<std::string, std::string> {
  using std::map<std::string, std::string>::map;
};

constexpr double kGi = 0x1p30;

/// A root folder with `files`.
class Tree {
 public:
  explicit Tree(const Files& files) {
    for (const auto& [name, text] : files) {
      const auto path = folder_.path() / name;
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << text;
    }
  }
  const std::filesystem::path& root() const { return folder_.path(); }

 private:
  TempDir folder_;
};

Files operator+(Files one, const Files& other) {
  one.insert(other.begin(), other.end());
  return one;
}

const Files kMeminfo = {{"proc/meminfo", "MemTotal:       67108864 kB\nMemAvailable:   62914560 kB\n"}};  // 60 GiB

/// Version 2 with a process in a service below two slices, as systemd nests them.
const Files kNested =
    kMeminfo + Files{{"proc/self/cgroup", "0::/user.slice/job.slice/train.service\n"},
                     {"proc/self/mountinfo",
                      "24 1 0:22 / /proc rw - proc proc rw\n"
                      "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"}};
const std::string kTop = "sys/fs/cgroup/", kSlice = kTop + "user.slice/job.slice/",
                  kService = kSlice + "train.service/";

/// Version 1 as Slurm uses it.
const Files kSlurm = kMeminfo + Files{{"proc/self/cgroup",
                                       "9:cpu,cpuacct:/slurm/uid_0/job_7/step_0\n8:memory:/slurm/uid_0/job_7/step_0\n"
                                       "1:name=systemd:/system.slice/slurmd.service\n"},
                                      {"proc/self/mountinfo",
                                       "33 24 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                                       "34 24 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"}};
const std::string kJob = "sys/fs/cgroup/memory/slurm/uid_0/job_7/", kStep = kJob + "step_0/";
const std::string kNoLimit = "9223372036854771712\n";

}  // namespace

TEST_CASE("memory: without control groups it is what the machine has available") {
  CHECK(host::free_memory(Tree(kMeminfo).root()) == 60 * kGi);
  CHECK(host::free_memory(Tree(kNested).root()) == 60 * kGi);
  CHECK(host::free_memory(Tree(Files{}).root()) == 0);
}

TEST_CASE("memory: the least limit counts, wherever it is on the way to the top of the tree") {
  for (const auto& folder : {kService, kSlice, kTop + "user.slice/"}) {
    CAPTURE(folder);
    const Tree tree(kNested + Files{{folder + "memory.max", "419430400\n"},
                                    {folder + "memory.current", "104857600\n"},
                                    {kService + "memory.max", "max\n"},
                                    {kService + "memory.current", "104857600\n"}});
    CHECK(host::free_memory(tree.root()) == 300 << 20);  // 400 MiB, of which 100 are used
  }
  const Tree both(kNested + Files{{kService + "memory.max", "8589934592\n"},
                                  {kService + "memory.current", "0\n"},
                                  {kSlice + "memory.max", "4294967296\n"},
                                  {kSlice + "memory.current", "1073741824\n"}});
  CHECK(host::free_memory(both.root()) == 3 * kGi);
}

TEST_CASE("memory: pages of files that nothing used lately do not count as used") {
  const Tree tree(kNested + Files{{kService + "memory.max", "4294967296\n"},
                                  {kService + "memory.current", "4250000000\n"},
                                  {kService + "memory.stat",
                                   "anon 800000000\nfile 3400000000\n"
                                   "inactive_file 3300000000\nactive_file 100000000\n"}});
  CHECK(host::free_memory(tree.root()) == 4294967296 - 950000000);  // 3.3 GB and not 45 MB
  const Tree step(kSlurm + Files{{kStep + "memory.limit_in_bytes", "4294967296\n"},
                                 {kStep + "memory.usage_in_bytes", "4250000000\n"},
                                 {kStep + "memory.stat", "inactive_file 1\ntotal_inactive_file 3300000000\n"}});
  CHECK(host::free_memory(step.root()) == 4294967296 - 950000000);
}

TEST_CASE("memory: version 1's groups are read where their tree is mounted, and the largest number is no limit") {
  const Tree tree(kSlurm + Files{{kStep + "memory.limit_in_bytes", kNoLimit},
                                 {kStep + "memory.usage_in_bytes", "5000\n"},
                                 {kJob + "memory.limit_in_bytes", "419430400\n"},
                                 {kJob + "memory.usage_in_bytes", "104857600\n"}});
  CHECK(host::free_memory(tree.root()) == 300 << 20);
  // A container that sees its own group as the root of the mount, and the host's path of it in /proc/self/cgroup.
  const Tree container(kMeminfo + Files{{"proc/self/cgroup", "4:memory:/docker/5f\n"},
                                        {"proc/self/mountinfo",
                                         "34 24 0:30 /docker/5f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"},
                                        {"sys/fs/cgroup/memory/memory.limit_in_bytes", "419430400\n"},
                                        {"sys/fs/cgroup/memory/memory.usage_in_bytes", "104857600\n"}});
  CHECK(host::free_memory(container.root()) == 300 << 20);
  // A group outside of what is mounted: the mount's root is all that is seen.
  const Tree outside(kMeminfo + Files{{"proc/self/cgroup", "0::/../../other\n"},
                                      {"proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                                      {"sys/fs/cgroup/memory.max", "419430400\n"},
                                      {"sys/fs/cgroup/memory.current", "104857600\n"}});
  CHECK(host::free_memory(outside.root()) == 300 << 20);
}

TEST_CASE("memory: what is used beyond a limit leaves nothing, and files that are no numbers are no limit") {
  const Files used = {{kService + "memory.current", "104857600\n"}};
  CHECK(host::free_memory(Tree(kNested + used + Files{{kService + "memory.max", "5000\n"}}).root()) == 0);
  for (const char* text : {"max\n", "", "x"}) {
    CHECK(host::free_memory(Tree(kNested + used + Files{{kService + "memory.max", text}}).root()) == 60 * kGi);
  }
}

TEST_CASE("memory: a limit of the process itself counts, as batch systems set it") {
  const Files status = {{"proc/self/status", "VmSize:\t  102400 kB\nVmData:\t   51200 kB\n"}};
  const auto limits = [](const std::string& space, const std::string& data) {
    return Files{{"proc/self/limits",
                  "Limit                     Soft Limit           Hard Limit           Units\n"
                  "Max data size             " +
                      data +
                      "            unlimited            bytes\n"
                      "Max address space         " +
                      space + "            unlimited            bytes\n"}};
  };
  const std::string none = "unlimited";
  CHECK(host::free_memory(Tree(kMeminfo + status + limits(none, none)).root()) == 60 * kGi);
  CHECK(host::free_memory(Tree(kMeminfo + status + limits("419430400", none)).root()) == 300 << 20);
  CHECK(host::free_memory(Tree(kMeminfo + status + limits(none, "419430400")).root()) == 350 << 20);
  CHECK(host::free_memory(Tree(kMeminfo + status + limits("1000", none)).root()) == 0);
}

TEST_CASE("processors: the least quota on the way to the top, of both versions") {
  CHECK_FALSE(host::quota(Tree(kNested).root()));
  CHECK_FALSE(host::quota(Tree(kNested + Files{{kService + "cpu.max", "max 100000\n"}}).root()));
  const Tree half(kNested + Files{{kService + "cpu.max", "max 100000\n"},
                                  {kSlice + "cpu.max", "50000 100000\n"},
                                  {kTop + "user.slice/cpu.max", "800000 100000\n"}});
  REQUIRE(host::quota(half.root()));
  CHECK(host::quota(half.root())->processors == 0.5);
  CHECK(host::quota(half.root())->file == (half.root() / (kSlice + "cpu.max")).string());
  const std::string cpu = "sys/fs/cgroup/cpu,cpuacct/slurm/uid_0/job_7/";
  const Tree slurm(kSlurm + Files{{cpu + "cpu.cfs_quota_us", "250000\n"},
                                  {cpu + "cpu.cfs_period_us", "100000\n"},
                                  {cpu + "step_0/cpu.cfs_quota_us", "-1\n"},
                                  {cpu + "step_0/cpu.cfs_period_us", "100000\n"}});
  REQUIRE(host::quota(slurm.root()));
  CHECK(host::quota(slurm.root())->processors == 2.5);
}

TEST_CASE("processors: how long a quota held the groups back is read in both versions") {
  const Tree nested(kNested + Files{{kService + "cpu.stat",
                                     "usage_usec 9\nnr_periods 20\nnr_throttled 12\n"
                                     "throttled_usec 1500000\n"}});
  CHECK(host::throttled(nested.root()).periods == 12);
  CHECK(host::throttled(nested.root()).seconds == doctest::Approx(1.5));
  const Tree slurm(kSlurm + Files{{"sys/fs/cgroup/cpu,cpuacct/slurm/uid_0/job_7/cpu.stat",
                                   "nr_periods 20\nnr_throttled 3\nthrottled_time 2500000000\n"}});
  CHECK(host::throttled(slurm.root()).periods == 3);
  CHECK(host::throttled(slurm.root()).seconds == doctest::Approx(2.5));
}

TEST_CASE("processors: lists are read as the kernel writes them, and what is no list gives none") {
  using Numbers = std::vector<std::int64_t>;
  CHECK(host::processors_of("0-3,8") == Numbers{0, 1, 2, 3, 8});
  CHECK(host::processors_of("7") == Numbers{7});
  CHECK(host::processors_of("2-2,2,1") == Numbers{1, 2});
  for (const char* bad : {"", "x", "3-1", "-1", "0-99999999", "0-", "0 1"}) CHECK(host::processors_of(bad).empty());
  CHECK(host::allowed_processors(Tree(Files{{"proc/self/status",
                                             "Name:\ta\nCpus_allowed:\tf\n"
                                             "Cpus_allowed_list:\t0-3\n"}})
                                     .root()) == "0-3");
  CHECK(host::allowed_processors(Tree(Files{}).root()).empty());
}

TEST_CASE("processors: half a processor gives one thread, and a rank that is bound already is not divided again") {
  const auto threads = [](const std::string& own, const std::vector<std::string>& all, std::int64_t local,
                          std::optional<double> quota = {}) {
    const auto limit = quota ? std::optional(host::Quota{*quota, "cpu.max"}) : std::nullopt;
    return host::threads_of(host::share_of_processors(own, all, local, limit));
  };
  CHECK(threads("0-7", {}, 1) == 8);
  CHECK(threads("0-7", {"0-7", "0-7"}, 2) == 4);  // both may run everywhere
  CHECK(threads("0-3", {"0-3", "4-7"}, 2) == 4);  // each is bound to its half
  CHECK(threads("0-3", {"0-3", "0-3"}, 2) == 2);  // both are in one container's half
  CHECK(threads("0-1", {"0-1", "0-7", "0-7"}, 3) == 1);
  CHECK(threads("0-7", {"0-1", "0-7", "0-7"}, 3) == 3);  // 2/3 of the first two, half of the others
  CHECK(threads("0-5", {"0-5", "0-5", "0-5", "0-5", "0-5", "0-5"}, 6) == 1);
  CHECK(threads("0-7", {}, 4) == 2);  // a kernel that does not tell machines apart
  CHECK(threads("0-1", {}, 1, 0.5) == 1);
  CHECK(threads("0-63", {}, 1, 4.0) == 4);
  CHECK(threads("0-63", {"0-63", "0-63"}, 2, 4.0) == 2);
  CHECK(threads("0-3", {}, 1, 16.0) == 4);
  CHECK(threads("", {}, 1) >= 1);
  CHECK(host::share_of_processors("0-1", {"0-1"}, 1, host::Quota{0.5, "cpu.max"}) == 0.5);
}
