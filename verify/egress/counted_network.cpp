// SPDX-License-Identifier: Apache-2.0
// Namespaces, one route and a packet socket.
// See counted_network.hpp.
// The kernel filters: of a stream its first packet, of datagrams all that leave or ask for a name.
#include "verify/egress/counted_network.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace sealift::verify {
namespace {

constexpr std::size_t kMostSeen = 200;
constexpr std::uint16_t kDnsPort = 53;

std::string fault_of(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

bool write_file_of_self(const std::string& name, const std::string& text) {
  const int file = open(("/proc/self/" + name).c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  return written;
}

/// A network namespace; of somebody who is not root in a user namespace, where it is.
std::string unshare_network() {
  if (unshare(CLONE_NEWNET) == 0) return {};
  const auto user = getuid();
  const auto group = getgid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return fault_of("a network namespace is refused");
  write_file_of_self("setgroups", "deny");
  if (!write_file_of_self("uid_map", "0 " + std::to_string(user) + " 1") ||
      !write_file_of_self("gid_map", "0 " + std::to_string(group) + " 1")) {
    return fault_of("the user namespace's map is refused");
  }
  return {};
}

std::string loopback_up() {
  const int file = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool up = file >= 0 && ioctl(file, SIOCSIFFLAGS, &request) == 0;
  const auto fault = up ? std::string() : fault_of("the loopback cannot be started");
  if (file >= 0) close(file);
  return fault;
}

/// `ip route add local default dev lo`, of one family.
std::string all_is_local(int family) {
  struct {
    nlmsghdr header{};
    rtmsg route{};
    char attributes[RTA_SPACE(sizeof(int))] = {};
  } request;
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_NEWROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK;
  request.route.rtm_family = static_cast<unsigned char>(family);
  request.route.rtm_table = RT_TABLE_LOCAL;
  request.route.rtm_protocol = RTPROT_BOOT;
  request.route.rtm_scope = RT_SCOPE_HOST;
  request.route.rtm_type = RTN_LOCAL;
  const int device = static_cast<int>(if_nametoindex("lo"));
  rtattr attribute{RTA_LENGTH(sizeof device), RTA_OIF};
  std::memcpy(request.attributes, &attribute, sizeof attribute);
  std::memcpy(request.attributes + RTA_LENGTH(0), &device, sizeof device);
  const int file = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (file < 0) return fault_of("no netlink");
  struct {
    nlmsghdr header;
    nlmsgerr error;
  } answer{};
  const bool asked = send(file, &request, sizeof request, 0) == static_cast<ssize_t>(sizeof request) &&
                     recv(file, &answer, sizeof answer, 0) > 0;
  close(file);
  if (!asked) return fault_of("no answer from netlink");
  errno = -answer.error.error;
  return errno == 0 ? std::string() : fault_of("the route is refused");
}

/// Outgoing packets of the loopback: the first of each stream, and datagrams, both but for 127.0.0.0/8; of that, what
/// asks for a name.
int packet_socket() {
  constexpr auto kPacketType = static_cast<unsigned>(SKF_AD_OFF + SKF_AD_PKTTYPE);
  constexpr auto kProtocol = static_cast<unsigned>(SKF_AD_OFF + SKF_AD_PROTOCOL);
  sock_filter code[] = {
      /* 0*/ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kPacketType),
      /* 1*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 23),
      /* 2*/ BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kProtocol),
      /* 3*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 14, 0),
      /* 4*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 20),
      /* 5*/ BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),  // X: length of the header
      /* 6*/ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
      /* 7*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 6, 0),
      /* 8*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 16),
      /* 9*/ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 16),  // the first byte of the destination
      /*10*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 127, 14, 0),
      /*11*/ BPF_STMT(BPF_LD | BPF_B | BPF_IND, 13),
      /*12*/ BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),  // SYN and ACK
      /*13*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 10, 11),
      /*14*/ BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),  // port of a datagram
      /*15*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kDnsPort, 8, 0),
      /*16*/ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 16),
      /*17*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 127, 7, 6),
      /*18*/ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6),  // IPv6: the next header
      /*19*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 4, 0),
      /*20*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 4),
      /*21*/ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 53),
      /*22*/ BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
      /*23*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),
      /*24*/ BPF_STMT(BPF_RET | BPF_K, 2048),
      /*25*/ BPF_STMT(BPF_RET | BPF_K, 0),
  };
  sock_fprog program{static_cast<unsigned short>(sizeof code / sizeof *code), code};
  const int file = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_ll place{};
  place.sll_family = AF_PACKET;
  place.sll_protocol = htons(ETH_P_ALL);
  place.sll_ifindex = static_cast<int>(if_nametoindex("lo"));
  const int room = 8 << 20;
  if (file < 0 || setsockopt(file, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0 ||
      bind(file, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0) {
    const auto fault = fault_of("packets may not be looked at");
    if (file >= 0) close(file);
    throw std::runtime_error(fault);
  }
  setsockopt(file, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  return file;
}

struct Packet {
  Destination to;
  bool datagram = false;
  std::string payload;
};

/// Of what passed the filter; nothing where it is cut short.
std::optional<Packet> packet_of(const std::string& bytes) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  if (bytes.size() < 28) return std::nullopt;
  const bool six = byte(0) >> 4 == 6;
  const std::size_t header = six ? 40 : 4 * (byte(0) & 0xFu);
  if (bytes.size() < header + 8) return std::nullopt;
  Packet packet;
  packet.to.family = six ? AF_INET6 : AF_INET;
  packet.to.address = six ? bytes.substr(24, 16) : bytes.substr(16, 4);
  packet.to.port = static_cast<std::uint16_t>(byte(header + 2) << 8 | byte(header + 3));
  packet.datagram = byte(six ? 6 : 9) == IPPROTO_UDP;
  packet.payload = bytes.substr(header + 8, 512);
  return packet;
}

void count_attempt(std::vector<Attempt>& seen, Attempt attempt) {
  for (auto& known : seen) {
    if (known.destination != attempt.destination || known.name != attempt.name) continue;
    ++known.times;
    return;
  }
  if (seen.size() < kMostSeen) seen.push_back(std::move(attempt));
}

}  // namespace

std::string enter_counted_network() {
  if (auto fault = unshare_network(); !fault.empty()) return fault;
  if (auto fault = loopback_up(); !fault.empty()) return fault;
  if (auto fault = all_is_local(AF_INET); !fault.empty()) return fault;
  all_is_local(AF_INET6);  // a kernel may be without it; then nothing can leave by it
  return {};
}

PacketCount::PacketCount() : socket_(packet_socket()) {}

PacketCount::~PacketCount() {
  close(socket_);
}

std::vector<Attempt> PacketCount::attempts(const Allowed& allowed) {
  std::string bytes(2048, '\0');
  for (ssize_t size = 0; (size = recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT)) >= 0;) {
    const auto packet = packet_of(bytes.substr(0, static_cast<std::size_t>(size)));
    if (!packet) continue;
    const auto name = packet->datagram && packet->to.port == kDnsPort ? dns_question(packet->payload) : std::nullopt;
    if (name ? allowed.may_ask(*name) : allowed.may_reach(packet->to)) continue;
    count_attempt(seen_, {.program = {"a program of this run", "本次运行的某个程序"},
                          .command_line = "",
                          .call = packet->datagram ? "sendto" : "connect",
                          .destination = packet->to.text(),
                          .name = name.value_or(""),
                          .python = ""});
  }
  tpacket_stats lost{};
  socklen_t size = sizeof lost;
  if (getsockopt(socket_, SOL_PACKET, PACKET_STATISTICS, &lost, &size) == 0 && lost.tp_drops > 0) {
    seen_.push_back({.program = {"programs of this run", "本次运行的若干程序"},
                     .command_line = "",
                     .call = "sendto",
                     .destination = std::to_string(lost.tp_drops) + " more packets, too many to be read",
                     .name = "",
                     .python = ""});
  }
  return seen_;
}

}  // namespace sealift::verify
