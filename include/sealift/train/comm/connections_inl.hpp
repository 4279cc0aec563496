// SPDX-License-Identifier: Apache-2.0
// The bodies of connections.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/channel_inl.hpp>  // TaggedGloo
#include <sealift/train/comm/connections.hpp>

#include <csignal>
#include <future>
#include <memory>

namespace sealift::train {

namespace detail {

/// Runs `connect` for the collective `number` of `group`, which was issued, on a thread of its own, since nothing ends
/// it when another rank does not come; the watch names that rank. The thread is left behind then.
template <class Made>
Made connect_watched(RankWatch& watch, const Label& label, std::size_t group, std::uint64_t number,
                     std::packaged_task<Made()> connect) {
  auto& issued = watch.issued();
  const IssuedCollectives::Waiting waiting(issued, label, group, number, nullptr);
  auto made = connect.get_future();
  std::thread thread(std::move(connect));
  while (made.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
    if (!issued.has_failed()) continue;
    thread.detach();
    issued.stop_at(label);
  }
  thread.join();
  try {
    return made.get();
  } catch (const c10::Error& error) {
    watch.broken(label, error.what_without_backtrace());
  } catch (const std::exception& error) {
    watch.broken(label, error.what());
  }
}

SEALIFT_BODY Collectives Connections::group(const std::string& axes, std::int64_t number,
                                            std::vector<std::int64_t> members) {
  if (members.size() == 1) return {};
  if (const auto known = made_.find(members); known != made_.end()) return known->second;
  const auto own = std::find(members.begin(), members.end(), world.rank) - members.begin();
  auto channel = std::make_shared<Channel>();
  channel->name = is_world(members) ? "world" : axes + std::to_string(number);
  channel->watch = watch;
  channel->traffic = traffic;
  channel->order_check = options.order_check;
  channel->own = own;
  channel->members = members;
  channel->device = world.device;
  channel->check_group = watch->issued().add_group(channel->name + " check", members);
  channel->group = watch->issued().add_group(channel->name, members);
  if (is_world(members)) world_group_ = channel->group;
  channel->connect = [this_world = world, count = gloo_made_, store = store_of(channel->name + "/gloo"),
                      other = options.host_engine, label = Label{.op = "connect", .unit = axes},
                      weak = std::weak_ptr(channel)] {
    const auto self = weak.lock();  // an owner calls
    auto& issued = self->watch->issued();
    const auto number = issued.issue(self->check_group, label);
    const auto lines = connect_watched(
        *self->watch, label, self->check_group, number,
        std::packaged_task<std::shared_ptr<GlooLines>()>([=, own = self->own, size = self->members.size()] {
          if (!other) return connect_gloo(this_world, store, own, size, *count);
          return std::make_shared<GlooLines>(other(store, static_cast<int>(own), static_cast<int>(size)));
        }));
    if (!self->world) self->world = lines;
    // All have connected when each has heard of each: a rank that went on before and refused its job would close
    // connections that others are still opening, and their error would be a closed connection instead of the refusal.
    // By the connections, and not by the store, since they tell of a rank that ends.
    compare_labels(self, label);
    return lines;
  };
  if (!world_lines_) world_lines_ = channel->lines = channel->connect();
  channel->world = world_lines_;
  connect_engine(*channel, axes);
  return made_[std::move(members)] = Collectives(std::move(channel));
}

SEALIFT_BODY bool Connections::is_world(const std::vector<std::int64_t>& members) const {
  return static_cast<std::int64_t>(members.size()) == world.size;
}

SEALIFT_BODY Store Connections::store_of(const std::string& name) const {
  return c10::make_intrusive<c10d::PrefixStore>(generation + "/" + name, world.store);
}

SEALIFT_BODY void Connections::ignore_closed_connections() {
  struct sigaction action {};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
      action.sa_handler == SIG_DFL) {
    std::signal(SIGPIPE, SIG_IGN);
  }
}

SEALIFT_BODY std::shared_ptr<GlooLines> Connections::connect_gloo(const World& world, const Store& store,
                                                                  std::int64_t rank, std::size_t size,
                                                                  std::int64_t& count) {
  ignore_closed_connections();
  // The watch gives up after the time-out, with a better message; Gloo's own time-out is for when the watch fails.
  auto options = c10d::ProcessGroupGloo::Options::create(world.timeout * 2 + std::chrono::seconds(1));
  // Binding to a given address keeps Gloo from resolving the host's own name, which may fail on an isolated host.
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(world.address, false));
  auto gloo =
      c10::make_intrusive<TaggedGloo>(store, static_cast<int>(rank), static_cast<int>(size), std::move(options));
  ++count;
  return std::make_shared<GlooLines>(std::move(gloo));
}

SEALIFT_BODY void Connections::connect_engine(Channel& channel, const std::string& axes) {
  auto factory = options.device_engine;
  if (!factory) {
    const auto registered = registered_engine(world.device.type());
    TORCH_CHECK(registered || world.device.is_cpu(), "World::device is ", world.device,
                " but this program has registered no engine for collectives there; for CUDA build it with ",
                "sealift::train_cuda, or load the CUDA plug-in before make_groups; for others call register_engine");
    if (!registered) return;
    factory = registered->factory;
  }
  if (!engines_) engines_ = std::make_shared<OwnedEngines>(watch);
  EngineRequest request{.store = store_of(channel.name + "/engine"),
                        .rank = static_cast<int>(channel.own),
                        .size = static_cast<int>(channel.size()),
                        .name = channel.name,
                        .ranks = channel.members,
                        .device = world.device,
                        .high_priority = true,
                        .timeout = world.timeout,
                        .split_from = engines_made() == 0 ? nullptr : engines_->all.front(),
                        .color = static_cast<int>(channel.members.front())};
  channel.engine = watched(axes, std::packaged_task([factory, request = std::move(request)] {
                             use_device(request.device);
                             return factory(request);
                           }));
  engines_->all.push_back(channel.engine);
  channel.engines = engines_;
  watch->engines().add(channel.engine);
}

SEALIFT_BODY c10::intrusive_ptr<c10d::Backend> Connections::watched(
    const std::string& axes, std::packaged_task<c10::intrusive_ptr<c10d::Backend>()> connect) {
  const Label label{.op = "connect", .unit = axes};
  const auto number = watch->issued().issue(world_group_, label);
  return connect_watched(*watch, label, world_group_, number, std::move(connect));
}

}  // namespace detail

}  // namespace sealift::train
