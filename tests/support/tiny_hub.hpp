// SPDX-License-Identifier: Apache-2.0
// A model hub on the loopback: the routes that a hub's client asks, answered from files in memory. Large files are sent
// on to another host, as hubs do; its other port makes it one.
#pragma once

#include <set>

#include "bundle/core/json.hpp"
#include "tests/support/tiny_model.hpp"
#include "tests/support/unreliable_server.hpp"

namespace sealift::test {

struct TinyHub {
  UnreliableServer server;   // the hub
  UnreliableServer storage;  // where the bytes of large files are
  std::string commit = std::string(39, 'c') + "1";
  std::set<std::string> large = {"model.safetensors"};  // pinned by SHA-256, as LFS does
  std::string token;                                    // what the hub wants to see
  std::size_t page_size = 1000;

  std::string endpoint() const { return server.url(""); }

  bundle::Json item(const std::string& path, const std::string& bytes) const {
    bundle::Json item = {{"type", "file"}, {"path", path}, {"size", bytes.size()}, {"oid", std::string(40, 'd')}};
    if (large.contains(path))
      item["lfs"] = {
          {"oid", bundle::sha256(bundle::as_bytes(bytes)).hex()}, {"size", bytes.size()}, {"pointerSize", 134}};
    return item;
  }

  void publish(const std::string& repo, const ModelFiles& files, const std::string& kind = "models",
               const std::string& revision = "main") {
    const std::string api = "/api/" + kind + "/" + repo;
    const std::string tree = api + "/tree/" + commit + "?recursive=true";
    put(api + "/revision/" + revision, {.body = bundle::write_json({{"id", repo}, {"sha", commit}, {"score", 0.5}})});
    bundle::Json page = bundle::Json::array({{{"type", "directory"}, {"path", "sub"}, {"size", 0}}});
    std::string url = tree;
    std::size_t number = 1;
    for (const auto& [path, bytes] : files) {
      if (page.size() == page_size) {
        const std::string next = tree + "&cursor=" + std::to_string(++number);
        // A mirror that hands on what the real hub says: another host, which nobody can reach.
        put(url, {.body = page.dump(), .headers = "Link: <http://hub.invalid" + next + ">; rel=\"next\"\r\n"});
        page = bundle::Json::array();
        url = next;
      }
      page.push_back(item(path, bytes));
      put_file(repo, path, bytes, kind);
    }
    put(url, {.body = page.dump()});
  }

  void put_file(const std::string& repo, const std::string& path, const std::string& bytes,
                const std::string& kind = "models") {
    const std::string url = (kind == "models" ? "/" : "/" + kind + "/") + repo + "/resolve/" + commit + "/" + path;
    if (!large.contains(path)) return put(url, {.body = bytes});
    storage.put("/blob/" + path, {.body = bytes});
    put(url, {.body = {}, .location = storage.url("/blob/" + path)});
  }

  void put(const std::string& url, UnreliableServer::File file) {
    file.token = token;
    server.put(url, std::move(file));
  }
};

}  // namespace sealift::test
