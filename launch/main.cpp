// SPDX-License-Identifier: Apache-2.0
// sealift-launch: starts any program as the ranks of a job, whatever started sealift-launch itself.
// Arguments -> the core's launcher table -> numbers (place) -> processes (ranks).
// Static and without LibTorch, so that it starts wherever the installer does; the table is the core's own header, so
// that a Python program and sealift-train find the same world.
#include "launch/ranks.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace sealift::launch {

namespace {

constexpr int kUsage = 2;

constexpr char kHelp[] =
    "sealift-launch [--nproc N] [--per-host] [--quiet] COMMAND...\n"
    "\n"
    "Starts COMMAND with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NNODES, NODE_RANK, MASTER_ADDR and\n"
    "MASTER_PORT, from the variables of srun, torchrun, mpirun, Kubeflow, PAI-DLC or ms-swift; alone it is rank 0 of "
    "1.\n"
    "\n"
    "  --nproc N    start N ranks on this host; with a launcher that starts one task on each host: on each\n"
    "  --per-host   start COMMAND once on this host, for a program that starts its own ranks (swift, torchrun):\n"
    "               it gets NNODES, NODE_RANK, NPROC_PER_NODE, MASTER_ADDR and MASTER_PORT\n"
    "  --quiet      do not say what was found\n"
    "  --version\n"
    "\n"
    "Signals are passed on. One rank that fails ends the others of this host, and is named.\n"
    "Exit code: that of the rank that failed first; 2: arguments or variables make no sense; 127: no such COMMAND.\n";

struct Arguments {
  std::int64_t nproc = 0;  // 0: as the launcher's variables say
  bool per_host = false;
  bool quiet = false;
  char** command = nullptr;
};

std::int64_t read_nproc(const char* text) {
  std::int64_t value = 0;
  const char* const last = text == nullptr ? nullptr : text + std::strlen(text);
  const bool good = text != nullptr && std::from_chars(text, last, value).ptr == last && value >= 1 &&
                    value <= train::launchers::kMaxRanksPerHost;
  TORCH_CHECK(good, "--nproc is '", text == nullptr ? "" : text, "'; expected a whole number from 1 to ",
              train::launchers::kMaxRanksPerHost);
  return value;
}

/// Options end at the first other word, so that COMMAND keeps its own.
Arguments read_arguments(char** words) {
  Arguments arguments;
  for (++words; *words != nullptr && **words == '-'; ++words) {
    const std::string_view word = *words;
    if (word == "--") {
      ++words;
      break;
    }
    if (word == "--nproc") {
      arguments.nproc = read_nproc(words[1]);
      ++words;
    } else if (word.starts_with("--nproc=")) {
      arguments.nproc = read_nproc(*words + 8);
    } else if (word == "--per-host") {
      arguments.per_host = true;
    } else if (word == "--quiet") {
      arguments.quiet = true;
    } else {
      TORCH_CHECK(false, "the option ", word, " is not known; see --help, and put COMMAND's own options behind it");
    }
  }
  TORCH_CHECK(*words != nullptr, "there is no COMMAND; see --help");
  arguments.command = words;
  return arguments;
}

/// A port of the loopback that nobody holds now. The ranks serve their store on it a moment later.
std::int64_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool found = socket >= 0 && bind(socket, any, size) == 0 && getsockname(socket, any, &size) == 0;
  const int error = errno;
  if (socket >= 0) close(socket);
  TORCH_CHECK(found, "no port of the loopback is to be had, where the ranks of one host meet: ", std::strerror(error),
              "; bring it up with: ip link set lo up");
  return ntohs(address.sin_port);
}

int run(char** words) {
  const Arguments arguments = read_arguments(words);
  const train::Environment environment = [](const char* name) { return std::getenv(name); };
  Place place = place_of(train::parse_launch(environment), arguments.nproc, environment);
  train::Launch& launch = place.launch;
  if (launch.master_port == 0) launch.master_port = free_port();
  if (!arguments.quiet && launch.rank == 0)
    say(std::to_string(launch.local_world_size) + " of " + std::to_string(launch.world_size) +
        " ranks here, store at " + launch.master_addr + ":" + std::to_string(launch.master_port) + "; " +
        launch.source);
  if (arguments.per_host) {
    TORCH_CHECK(launch.local_rank == 0 && (launch.local_world_size == 1 || place.ranks > 1),
                "--per-host beside a launcher that has started ", launch.local_world_size, " ranks on this host; ",
                "have it start one task on each host (", launch.source, ")");
    return become(arguments.command, variables_of_host(place));
  }
  return place.ranks == 1 ? become(arguments.command, variables_of_rank(place, 0))
                          : run_ranks(arguments.command, place);
}

bool asks(char** words, const char* option) {
  return words[1] != nullptr && std::strcmp(words[1], option) == 0;
}

}  // namespace

}  // namespace sealift::launch

int main(int argc, char** argv) {
  using namespace sealift::launch;
  if (argc > 1 && asks(argv, "--help")) return std::fputs(kHelp, stdout) < 0 ? 1 : 0;
  if (argc > 1 && asks(argv, "--version")) return std::puts("sealift-launch " SEALIFT_VERSION) < 0 ? 1 : 0;
  try {
    return run(argv);
  } catch (const std::exception& error) {
    say(error.what());
    return kUsage;
  }
}
