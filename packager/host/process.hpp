// SPDX-License-Identifier: Apache-2.0
// Runs another program (uv, patchelf, the interpreter that is asked about itself) without a shell in between.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::packager {

// Called about twice a second while a program runs, with the last line that it printed.
using Watch = std::function<void(std::string_view last_line)>;

struct ProcessResult {
  int exit_code = 0;  // 128 + signal when one ended it
  std::string out;
  std::string err;
};

// Those of our variables that a program of the packing machine needs: paths, language, proxies, certificates, the agent
// of ssh. Nothing else of ours is passed on: no secret, and nothing that makes a program do something else than it was
// asked for (TAR_OPTIONS, GIT_*, PYTHON*, PIP_*, UV_INDEX, LD_PRELOAD, …).
std::map<std::string, std::string> passed_environment();

// What a program may take where a server chooses what it gets; 0: no limit of ours.
struct ProcessBounds {
  std::uint64_t largest_file = 0;  // bytes of a file that it writes
  std::uint64_t most_memory = 0;   // bytes that it allocates
};

// Waits for the program and keeps what it printed. It gets passed_environment() and `environment`, which wins. A name
// without '/' is looked up in PATH. Throws Missing when there is no such program, Io when it prints 64 MiB or more.
ProcessResult run_process(const std::vector<std::string>& argv,
                          const std::map<std::string, std::string>& environment = {}, const ProcessBounds& bounds = {},
                          const Watch& watch = {});

// Of an index of packages, unpacked too: more than any distribution has.
inline constexpr std::uint64_t kLargestIndex = std::uint64_t{1} << 30;

// The same, but a result other than 0 throws Io with the end of what it printed; returns its standard output.
std::string run_checked(const std::vector<std::string>& argv,
                        const std::map<std::string, std::string>& environment = {});

// The same with exactly these variables, and nothing of the login's: no key, its umask neither. `kept`, ascending:
// descriptors that it gets.
ProcessResult run_in(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment,
                     const Watch& watch = {}, const std::vector<int>& kept = {});

// Where PATH has `name`, else where it lies beside the running program, as in a wheel's environment; empty: nowhere.
std::filesystem::path find_program(const std::string& name);

}  // namespace sealift::packager
