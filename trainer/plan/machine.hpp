// SPDX-License-Identifier: Apache-2.0
// The machine that is planned for: hosts, cards, memory and rates, as `--machine 2x8x80GB --link 400Gbit` say them.
// Beside memory; the table takes one, and `auto` one that it has measured.
// Read strictly: a unit that is guessed wrong is a plan that is wrong by eight.
#pragma once

#include <cstdint>
#include <string>

namespace sealift::trainer::plan {

struct Machine {
  std::int64_t hosts = 1, cards = 1;  ///< cards of a host
  std::int64_t memory = 0;            ///< bytes of a card
  double link = 50e9;                 ///< bytes per second that a card sends to others on its host
  double network = 50e9;              ///< bytes per second that a host sends to others
  double latency = 20e-6;             ///< seconds of a collective beside its bytes
  double flops = 125e12;              ///< of a card in 16 bits, as it achieves them; half of it in fp32
  double bus = 20e9;                  ///< bytes per second between a card and its host's memory
  double memory_rate = 1.2e12;        ///< bytes per second of a card's memory
  double disk = 2e9;                  ///< bytes per second that a host writes
  std::int64_t host_memory = 0;       ///< bytes of a host; 0: unknown
  std::int64_t ranks() const { return hosts * cards; }
};

/// Sets hosts, cards and memory of "2x8x80GB" or "8x80GB". Throws std::invalid_argument.
void read_machine(const std::string& text, Machine& machine);

/// Bytes of "80GB", "24GiB" or "512MiB".
std::int64_t read_bytes(const std::string& name, const std::string& text);

/// Bytes per second of "400Gbit", "25GB" or "25GB/s".
double read_rate(const std::string& name, const std::string& text);

/// Seconds of "20us", "0.5ms" or "1s".
double read_seconds(const std::string& name, const std::string& text);

/// Operations per second of "312T", "125TFLOPS" or "1.5P".
double read_flops(const std::string& name, const std::string& text);

}  // namespace sealift::trainer::plan
