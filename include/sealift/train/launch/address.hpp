// SPDX-License-Identifier: Apache-2.0
// Addresses of hosts: of a name, of the interface that leads to another host, of a named interface.
// Below `rendezvous`: a master's address comes in, the address that Gloo listens on here leaves.
// Uses the system's resolver and routes, so nothing has to be configured and a numeric address needs no name service.
#pragma once

#include <c10/util/Exception.h>
#include <sealift/train/bodies.hpp>

#include <netdb.h>

#include <chrono>
#include <memory>
#include <string>

namespace sealift::train {

namespace rendezvous {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// The time left until `deadline`, at least a millisecond, since c10d takes zero for "forever".
Milliseconds left_until(Clock::time_point deadline);

std::string seconds(Milliseconds duration);

std::string to_text(const sockaddr* address, socklen_t size);

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

/// The addresses of `host`. A cluster's name service may learn of a host only after its ranks start, so an unknown name
/// is tried again until `patience` is over; then throws.
Addresses resolve(const std::string& host, std::int64_t port, Milliseconds patience);

/// Whether something listens at `address`; waits for at most `patience`.
bool answers(const addrinfo& address, Milliseconds patience);

}  // namespace rendezvous

/// The numeric address of the interface from which `host` is reached; loopback for a loopback host. Sends nothing but
/// the resolver's queries; an unknown name is tried again until `patience` is over.
std::string local_address_towards(const std::string& host, std::int64_t port, std::chrono::milliseconds patience = {});

/// The numeric address of a network interface, IPv4 before IPv6; throws unless an interface is up, and names all that
/// are.
std::string address_of_interface(const std::string& interface);

/// The address of the first of `interfaces`, which have commas between them; throws when one of them has none.
std::string address_of_interfaces(const std::string& interfaces);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/launch/address_inl.hpp>
#endif
