// SPDX-License-Identifier: Apache-2.0
// A file system on paper. It writes down what was done, and says what is left when the power goes after the first k
// operations: what was synced is there; of the rest anything from all to nothing, each operation for itself. That is
// harsher than ext4, XFS or btrfs, and as harsh as POSIX allows, save that a rename is one step.
// Bytes are durable after a sync of the whole file system; a name after that or after a sync of its folder (of a
// rename: the folder that it goes to). Source of the method: CrashMonkey (OSDI '18), ALICE (OSDI '14).
#pragma once

#include <optional>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "tests/support/disk_image.hpp"

namespace sealift::test {

// What of the operations that were not synced is lost.
enum class Loss {
  Nothing,  // the process was killed, the kernel lives on
  Bytes,    // every name is there, every file that was not synced is empty
  All,      // whatever was not synced
  Some,     // a part by chance; bytes may be torn, or zeros before others that were written later
};

class CrashModel {
 public:
  // What is in the image is durable.
  explicit CrashModel(const DiskImage& durable) {
    begin_.nodes.push_back({});
    std::map<std::string, std::size_t> twins;
    for (const auto& [path, there] : durable) {
      std::size_t& node = twins[there.twin];
      if (there.twin == path) node = add(begin_, there.node);
      const auto [folder, name] = split(begin_, path);
      begin_.folders[folder][name] = node;
    }
    now_ = begin_;
  }

  // Operations; paths are below the root, and the caller has done the same to a real disk with success.
  void make(const std::string& path, DiskNode node) {
    if (path.empty() || find(now_, path)) return;  // a folder that is there already
    const std::size_t made = add(now_, node);
    added_.push_back(std::move(node));
    act({.kind = Kind::Name, .node = made}, path);
  }
  void write(const std::string& path, std::string bytes) {
    const std::size_t node = *find(now_, path);
    act({.kind = Kind::Bytes, .node = node, .offset = now_.nodes[node].data.size(), .bytes = std::move(bytes)});
  }
  void link(const std::string& from, const std::string& to) {
    act({.kind = Kind::Name, .node = *find(now_, from)}, to);
  }
  void rename(const std::string& from, const std::string& to) {
    const auto [folder, name] = split(now_, from);
    act({.kind = Kind::Rename, .node = *find(now_, from), .from_folder = folder, .from_name = name}, to);
  }
  // Entry by entry, the last name first.
  void remove(const std::string& path) {
    const std::optional<std::size_t> node = find(now_, path);
    if (!node) return;
    std::vector<std::string> names;
    if (const auto folder = now_.folders.find(*node); folder != now_.folders.end())
      for (const auto& [name, child] : folder->second) names.push_back(name);
    for (auto name = names.rbegin(); name != names.rend(); ++name) remove(path + "/" + *name);
    act({.kind = Kind::Unname, .node = *node}, path);
  }
  void sync_all() { act({.kind = Kind::SyncAll}); }
  void sync_folder(const std::string& path) { act({.kind = Kind::SyncFolder, .folder = *find(now_, path)}); }

  std::size_t size() const { return log_.size(); }
  // Whether the k-th operation writes bytes, so that it may be torn.
  bool writes(std::size_t k) const { return log_.at(k).kind == Kind::Bytes; }

  // What is there after the first `count` operations and a loss. `torn`: and half of the next one's bytes.
  DiskImage image(std::size_t count, Loss loss, unsigned seed = 0, bool torn = false) const {
    State state = begin_;
    state.nodes.insert(state.nodes.end(), added_.begin(), added_.end());
    const std::vector<bool> durable = loss == Loss::Nothing ? std::vector<bool>(count, true) : durable_before(count);
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < count; ++i) {
      const Operation& operation = log_[i];
      const bool bytes = operation.kind == Kind::Bytes;
      if (durable[i] || (loss == Loss::Bytes && !bytes)) {
        apply(state, operation, operation.bytes.size());
      } else if (loss == Loss::Some) {
        const unsigned chance = random() % 4;  // lost, lost, torn, kept
        if (chance >= 2)
          apply(state, operation, chance == 2 ? random() % (operation.bytes.size() + 1) : operation.bytes.size());
      }
    }
    if (torn) apply(state, log_.at(count), log_[count].bytes.size() / 2);
    std::map<std::string, std::size_t> found;
    list(state, 0, "", found);
    DiskImage image;
    std::map<std::size_t, std::string> first;
    for (const auto& [path, node] : found) {
      image[path] = {state.nodes[node], path};
      if (state.nodes[node].type == DiskNode::Type::File)
        image[path].twin = first.try_emplace(node, path).first->second;
    }
    return image;
  }

  // The same file system after a kill behind the first `count` operations: the next run's come behind them.
  CrashModel killed_after(std::size_t count) const {
    CrashModel model(*this);
    model.log_.resize(count);
    model.now_ = begin_;
    model.now_.nodes.insert(model.now_.nodes.end(), added_.begin(), added_.end());
    for (const Operation& operation : model.log_) apply(model.now_, operation, operation.bytes.size());
    return model;
  }

 private:
  enum class Kind { Name, Unname, Rename, Bytes, SyncAll, SyncFolder };
  struct Operation {
    Kind kind;
    std::size_t node = 0;
    std::size_t folder = 0;  // that holds the name
    std::string name{};
    std::size_t from_folder = 0;
    std::string from_name{};
    std::uint64_t offset = 0;
    std::string bytes{};
  };
  struct State {
    std::vector<DiskNode> nodes;  // by number; 0 is the root
    std::map<std::size_t, std::map<std::string, std::size_t>> folders;
  };

  static std::size_t add(State& state, DiskNode node) {
    state.nodes.push_back(std::move(node));
    return state.nodes.size() - 1;
  }
  static std::optional<std::size_t> find(const State& state, const std::string& path) {
    std::size_t node = 0;
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const auto folder = state.folders.find(node);
      if (folder == state.folders.end()) return std::nullopt;
      const auto entry = folder->second.find(path.substr(begin, end - begin));
      if (entry == folder->second.end()) return std::nullopt;
      node = entry->second;
      begin = end + 1;
    }
    return node;
  }
  static std::pair<std::size_t, std::string> split(const State& state, const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == path.npos) return {0, path};
    return {find(state, path.substr(0, slash)).value(), path.substr(slash + 1)};
  }

  void act(Operation operation, const std::string& path = {}) {
    if (!path.empty()) std::tie(operation.folder, operation.name) = split(now_, path);
    apply(now_, operation, operation.bytes.size());
    log_.push_back(std::move(operation));
  }

  static void apply(State& state, const Operation& operation, std::size_t bytes) {
    switch (operation.kind) {
      case Kind::Name:
        state.folders[operation.folder][operation.name] = operation.node;
        return;
      case Kind::Unname:
        unname(state, operation.folder, operation.name, operation.node);
        return;
      case Kind::Rename:
        unname(state, operation.from_folder, operation.from_name, operation.node);
        state.folders[operation.folder][operation.name] = operation.node;
        return;
      case Kind::Bytes: {
        std::string& data = state.nodes[operation.node].data;
        data.resize(std::max<std::size_t>(data.size(), operation.offset + bytes), '\0');
        data.replace(operation.offset, bytes, operation.bytes, 0, bytes);
        return;
      }
      case Kind::SyncAll:
      case Kind::SyncFolder:
        return;
    }
  }
  // Only while it is the name of that node: what came before it may have been lost.
  static void unname(State& state, std::size_t folder, const std::string& name, std::size_t node) {
    std::map<std::string, std::size_t>& names = state.folders[folder];
    if (const auto entry = names.find(name); entry != names.end() && entry->second == node) names.erase(entry);
  }

  std::vector<bool> durable_before(std::size_t count) const {
    std::vector<bool> durable(count);
    bool all = false;
    std::set<std::size_t> folders;
    for (std::size_t i = count; i-- > 0;) {
      const Operation& operation = log_[i];
      if (operation.kind == Kind::SyncAll) all = true;
      if (operation.kind == Kind::SyncFolder) folders.insert(operation.folder);
      durable[i] = all || (operation.kind != Kind::Bytes && folders.contains(operation.folder));
    }
    return durable;
  }

  static void list(const State& state, std::size_t folder, const std::string& prefix,
                   std::map<std::string, std::size_t>& found) {
    const auto names = state.folders.find(folder);
    if (names == state.folders.end()) return;
    for (const auto& [name, node] : names->second) {
      found[prefix + name] = node;
      if (state.nodes[node].type == DiskNode::Type::Folder) list(state, node, prefix + name + "/", found);
    }
  }

  State begin_, now_;
  std::vector<DiskNode> added_;  // by every `make` so far, without bytes
  std::vector<Operation> log_;
};

}  // namespace sealift::test
