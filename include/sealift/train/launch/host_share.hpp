// SPDX-License-Identifier: Apache-2.0
// What of its host this process may use: processors, memory; and what a quota has taken from it.
// Beside `rendezvous`, which tells ranks of one machine of each other's processors; threads and budgets follow from it.
// The least limit counts, of the machine and of every control group on the way to the top: a container, a Slurm job or
// a service in a slice may be bounded at any of them.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/launch/control_groups.hpp>

#include <string_view>

namespace sealift::train::host {

/// A limit of processor time: so many processors' worth, and the file that says so.
struct Quota {
  double processors = 0;
  std::string file;
};

/// The least quota on this process; nothing where there is none.
std::optional<Quota> quota(const std::filesystem::path& root = "/");

/// How often, and for how many seconds, this process's groups were held back by their quota since they were made.
struct Throttled {
  double periods = 0, seconds = 0;
};
Throttled throttled(const std::filesystem::path& root = "/");

/// The processors that this process may run on as the kernel lists them, "0-3,8"; empty where it does not tell.
std::string allowed_processors(const std::filesystem::path& root = "/");

/// The numbers of such a list, in order. Any other text gives no numbers.
std::vector<std::int64_t> processors_of(std::string_view list);

/// How many processors a rank may keep busy, in parts of one: of each that `own` lists its part beside the other ranks
/// of the machine that may run there too (`all` has every rank's list, this one's as well), and of a quota its part
/// among the `local` ranks of this host. Without a list the machine's processors are divided among `local`.
double share_of_processors(const std::string& own, const std::vector<std::string>& all, std::int64_t local,
                           const std::optional<Quota>& quota);

/// The threads of a rank with such a share: at least one, and no more than run at once.
std::int64_t threads_of(double share);

/// Bytes of memory that this process can still get: what the machine has available, and at most what each of its groups
/// has left, and what is left of its own limits (ulimit -v and -d). Pages of files that nothing has used lately do not
/// count as used, since the kernel gives them up first.
std::int64_t free_memory(const std::filesystem::path& root = "/");

/// What tells one running kernel from others; empty where it does not tell.
std::string machine(const std::filesystem::path& root = "/");

/// What tells the network of one host, or of one container, from all others; empty where the kernel does not tell.
std::string network(const std::filesystem::path& root = "/");

}  // namespace sealift::train::host

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/launch/host_share_inl.hpp>
#endif
