// SPDX-License-Identifier: Apache-2.0
// Downloads against a server that misbehaves: what is kept, what is resumed, what is refused.
#include "packager/network/fetch.hpp"
#include "packager/files/part_file.hpp"
#include "packager/network/remote_documents.hpp"
#include "packager/network/remote_file.hpp"

#include <doctest/doctest.h>
#include <sys/file.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "sealift/bundle/core/file.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/unreliable_server.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::UnreliableServer;
using sealift::test::write_file;

namespace {

std::string some_bytes(std::size_t size, unsigned seed = 1) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return bytes;
}

struct Site {
  TempDir folder;
  Cache cache{folder / "cache"};
  UnreliableServer server;
  bundle::Progress progress{nullptr};
  FetchOptions options{.jobs = 3, .attempts = 4, .first_pause = std::chrono::milliseconds(1)};

  Download add(const std::string& path, UnreliableServer::File file, bool say_size = true) {
    Download download{.name = path, .url = server.url(path), .sha256 = bundle::sha256(bundle::as_bytes(file.body))};
    if (say_size) download.size = file.body.size();
    server.put(path, std::move(file));
    return download;
  }
  void get(const std::vector<Download>& downloads) { fetch(downloads, cache, progress, options); }
  std::string cached(const Download& download) const { return read_file(cache.path(download.sha256)); }
};

}  // namespace

TEST_CASE("fetch brings several files at once into the cache, by digest") {
  Site site;
  std::vector<Download> downloads;
  for (int i = 0; i < 8; ++i)
    downloads.push_back(site.add("/" + std::to_string(i), {.body = some_bytes(50'000, i)}, i % 2 == 0));
  site.get(downloads);
  for (int i = 0; i < 8; ++i) CHECK(site.cached(downloads[i]) == some_bytes(50'000, i));
  CHECK(std::filesystem::is_empty(site.cache.root() / "parts"));
}

TEST_CASE("fetch asks for nothing when the cache has it") {
  Site site;
  const Download download = site.add("/wheel", {.body = some_bytes(1000)});
  site.get({download, download});
  CHECK(site.server.requests().size() == 1);
  site.get({download});
  CHECK(site.server.requests().size() == 1);
}

TEST_CASE("fetch replaces a file of the cache that is damaged") {
  Site site;
  const Download download = site.add("/wheel", {.body = some_bytes(1000)});
  site.get({download});
  write_file(site.cache.path(download.sha256), some_bytes(1000, 9));
  site.get({download});
  CHECK(site.cached(download) == some_bytes(1000));
  CHECK(site.server.requests().size() == 2);
}

TEST_CASE("fetch continues a connection that was cut and does not fetch the beginning again") {
  Site site;
  const Download download = site.add("/wheel", {.body = some_bytes(300'000), .cut_after = 100'000, .cuts = 2});
  site.get({download});
  CHECK(site.cached(download) == some_bytes(300'000));
  const auto requests = site.server.requests();
  REQUIRE(requests.size() == 3);
  CHECK(requests[0].range == "");
  CHECK(requests[1].range == "bytes=100000-");
  CHECK(requests[2].range == "bytes=200000-");
  CHECK(site.server.sent() == 300'000);
}

TEST_CASE("fetch continues what an earlier run left behind") {
  Site site;
  const Download download = site.add("/wheel", {.body = some_bytes(300'000)});
  write_file(site.cache.part(download.sha256), some_bytes(300'000).substr(0, 250'000));
  site.get({download});
  CHECK(site.cached(download) == some_bytes(300'000));
  CHECK(site.server.sent() == 50'000);
}

TEST_CASE("fetch accepts a part that was already complete") {
  Site site;
  const Download download = site.add("/wheel", {.body = some_bytes(5000)});
  write_file(site.cache.part(download.sha256), some_bytes(5000));
  site.get({download});
  CHECK(site.cached(download) == some_bytes(5000));
  CHECK(site.server.sent() == 0);
}

TEST_CASE("fetch starts anew when the part is not the beginning of the locked file") {
  Site site;
  const Download download = site.add("/wheel", {.body = some_bytes(5000)});
  write_file(site.cache.part(download.sha256), some_bytes(2000, 7));
  site.get({download});
  CHECK(site.cached(download) == some_bytes(5000));
}

TEST_CASE("fetch starts anew when the server cannot continue") {
  Site site;
  const Download download = site.add("/wheel", {.body = some_bytes(5000), .ranges = false});
  write_file(site.cache.part(download.sha256), some_bytes(5000).substr(0, 2000));
  site.get({download});
  CHECK(site.cached(download) == some_bytes(5000));
}

TEST_CASE("fetch never keeps bytes with the wrong digest") {
  Site site;
  Download download = site.add("/wheel", {.body = some_bytes(5000)});
  site.server.put("/wheel", {.body = some_bytes(5000, 3)});
  CHECK_REFUSED(site.get({download}), Digest, "/wheel");
  CHECK_FALSE(site.cache.contains(download.sha256));
  CHECK_FALSE(std::filesystem::exists(site.cache.part(download.sha256)));
}

TEST_CASE("fetch stops a download that is longer than the lock says") {
  Site site;
  Download download = site.add("/wheel", {.body = some_bytes(5000)});
  site.server.put("/wheel", {.body = some_bytes(500'000)});
  CHECK_REFUSED(site.get({download}), Digest, "more than 5000 bytes");
  CHECK(std::filesystem::is_empty(site.cache.root() / "parts"));
}

TEST_CASE("fetch stops a download that does not end where nobody said its size") {
  Site site;
  site.options.most_unsized = 100'000;
  const Download download = site.add("/wheel", {.body = some_bytes(5000)}, false);
  site.server.put("/wheel", {.body = some_bytes(5'000'000)});
  CHECK_REFUSED(site.get({download}), Digest, "more than 100000 bytes");
  CHECK(std::filesystem::is_empty(site.cache.root() / "parts"));
  CHECK(site.options.most_unsized < FetchOptions{}.most_unsized);
  CHECK(FetchOptions{}.most_unsized == std::uint64_t{64} << 30);  // as docs/packing.md says
}

TEST_CASE("fetch tries again when a server fails, and gives up with the reason") {
  Site site;
  const Download download = site.add("/wheel", {.body = some_bytes(5000), .failures = 2});
  site.get({download});
  CHECK(site.server.requests().size() == 3);

  const Download hopeless = site.add("/never", {.body = some_bytes(600), .failures = 100});
  CHECK_REFUSED(site.get({hopeless}), Network, "503");
  CHECK(site.server.requests().size() == 3 + 4);
}

TEST_CASE("a server that limits how often it is asked is named for that, and neither network nor login") {
  Site site;
  const Download limited = site.add("/limited", {.body = "x", .failures = 100, .failure_status = 429});
  const bundle::Error error = sealift::test::refusal([&] { site.get({limited}); });
  INFO(error.what());
  CHECK(error.code() == bundle::ErrorCode::Network);
  CHECK(sealift::test::mentions(error, "the server limits how often it is asked (429)"));
  CHECK(sealift::test::mentions(error, "wait until the server answers again"));
  CHECK_FALSE(sealift::test::mentions(error, "login"));
  CHECK_FALSE(sealift::test::mentions(error, "proxy"));
  CHECK(site.server.requests().size() == 4);
}

TEST_CASE("a '+' that a server does not find is asked for as %2B, as object stores want it") {
  Site site;
  Download plus = site.add("/a%2Bb.whl", {.body = "bytes"});
  plus.url = site.server.url("/a+b.whl");
  site.get({plus});
  CHECK(site.cached(plus) == "bytes");
}

TEST_CASE("fetch does not ask again for what is not there") {
  Site site;
  Download download = site.add("/wheel", {.body = "x"});
  download.url = site.server.url("/gone");
  CHECK_REFUSED(site.get({download}), Network, "404");
  CHECK(site.server.requests().size() == 1);
}

TEST_CASE("an index that changed under the lock is one message that names every file, and what is good is kept") {
  Site site;
  const Download good = site.add("/good", {.body = some_bytes(5000)});
  Download gone = site.add("/gone", {.body = "x"}), other = site.add("/other", {.body = "new bytes"});
  gone.url = site.server.url("/taken-back");
  other.sha256 = bundle::sha256(bundle::as_bytes("old bytes"));
  const Download down = site.add("/down", {.body = "y", .failures = 100});
  site.options.jobs = 1;
  const bundle::Error refused = sealift::test::refusal([&] { site.get({gone, other, good, down}); });
  INFO(refused.what());
  CHECK(refused.code() == bundle::ErrorCode::Digest);
  CHECK(sealift::test::mentions(refused, "3 downloads failed"));
  CHECK(sealift::test::mentions(refused, "a download failed: /gone, " + gone.url));
  CHECK(sealift::test::mentions(refused, "404"));
  CHECK(sealift::test::mentions(refused, "is not the file that was locked: /other"));
  CHECK(sealift::test::mentions(refused, "a download failed: /down"));
  CHECK(sealift::test::mentions(refused, "sealift-pack lock again"));
  CHECK(site.cached(good) == some_bytes(5000));
  CHECK_FALSE(site.cache.contains(other.sha256));
}

TEST_CASE("fetch keeps what has arrived when it has to give up") {
  Site site;
  const Download download = site.add("/wheel", {.body = some_bytes(5000), .failures = 100});
  write_file(site.cache.part(download.sha256), some_bytes(5000).substr(0, 4000));
  CHECK_REFUSED(site.get({download}), Network, "/wheel");
  CHECK(std::filesystem::file_size(site.cache.part(download.sha256)) == 4000);
}

TEST_CASE("fetch does not give up on a connection that is cut often but moves on") {
  Site site;
  const Download download = site.add("/wheel", {.body = some_bytes(100'000), .cut_after = 10'000, .cuts = 100});
  site.get({download});
  CHECK(site.cached(download) == some_bytes(100'000));
  CHECK(site.server.requests().size() == 10);
}

TEST_CASE("fetch follows redirects") {
  Site site;
  Download download = site.add("/wheel", {.body = some_bytes(5000)});
  site.server.put("/old", {.body = {}, .location = "/wheel"});
  download.url = site.server.url("/old");
  site.get({download});
  CHECK(site.cached(download) == some_bytes(5000));
}

TEST_CASE("fetch knows before it starts that there is no room") {
  Site site;
  Download download = site.add("/wheel", {.body = "x"});
  download.size = std::uint64_t{1} << 60;
  CHECK_REFUSED(site.get({download}), Space, "not enough room");
  CHECK(site.server.requests().empty());
}

TEST_CASE("fetch leaves a part alone that another process is writing") {
  Site site;
  const Download download = site.add("/wheel", {.body = some_bytes(5000)});
  write_file(site.cache.part(download.sha256), "begun");
  const bundle::Descriptor other(::open(site.cache.part(download.sha256).c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(other.get(), LOCK_EX) == 0);
  CHECK_REFUSED(site.get({download}), Conflict, "another process");
  CHECK(read_file(site.cache.part(download.sha256)) == "begun");
}

TEST_CASE("several fetches of one file: each has the part to itself, and none writes into the cached file") {
  Site site;
  const std::string bytes = some_bytes(20'000);
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes(bytes));
  std::vector<std::string> faults(4);
  std::atomic<int> adopted{0};
  {
    std::vector<std::jthread> packers;
    for (std::string& fault : faults)
      packers.emplace_back([&] {
        bundle::Progress silent(nullptr);
        for (int round = 0; round < 300; ++round) try {
            PartFile part(site.cache, digest, silent);
            if (part.size() != 0) fault = "another one's part";
            part.write(bundle::as_bytes(bytes));
            if (part.finish_digest() != digest) fault = "another one's bytes";
            part.adopt();
            ++adopted;
            if (digest_of_file(site.cache.path(digest)) != digest) fault = "the cached file was written to";
          } catch (const bundle::Error& error) {
            if (error.code() != bundle::ErrorCode::Conflict) fault = error.what();
          }
      });
  }
  for (const std::string& fault : faults) CHECK(fault == "");
  CHECK(adopted > 0);
}

TEST_CASE("a failure that ends the run stops the other downloads, even one that brings nothing") {
  Site site;
  std::atomic<bool> ended{false};
  UnreliableServer::File stalled{.body = some_bytes(50'000), .cut_after = 10'000, .cuts = 1};
  stalled.once_cut = [&ended] { ended.wait(false); };
  const Download slow = site.add("/slow", std::move(stalled)), taken = site.add("/taken", {.body = some_bytes(5000)});
  write_file(site.cache.part(taken.sha256), "begun");
  const bundle::Descriptor other(::open(site.cache.part(taken.sha256).c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(other.get(), LOCK_EX) == 0);
  const auto begin = std::chrono::steady_clock::now();
  CHECK_REFUSED(site.get({slow, taken}), Conflict, "another process");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));  // 60 until it counts as too slow
  ended = true;
  ended.notify_all();
}

TEST_CASE("no message of a download holds the password in its address") {
  Site site;
  Download download = site.add("/wheel", {.body = "x"});
  download.url = "http://me:secret@" + site.server.url("/gone").substr(7);
  const bundle::Error refused = sealift::test::refusal([&] { site.get({download}); });
  CHECK(sealift::test::mentions(refused, "404"));
  CHECK(std::string(refused.what()).find("secret") == std::string::npos);
}

TEST_CASE("a redirect to a file of this machine is not followed") {
  Site site;
  Download download = site.add("/wheel", {.body = "x"});
  write_file(site.folder / "local", "x");
  site.server.put("/wheel", {.body = {}, .location = "file://" + (site.folder / "local").string()});
  CHECK_REFUSED(site.get({download}), Network, "/wheel");
  CHECK_FALSE(site.cache.contains(download.sha256));
}

TEST_CASE("sizes are asked for without fetching, and unknown ones are no failure") {
  Site site;
  site.add("/wheel", {.body = some_bytes(5000)});
  CHECK(remote_sizes({site.server.url("/wheel"), site.server.url("/gone")}, 2, {}) ==
        std::vector<std::uint64_t>{5000, 0});
  CHECK(site.server.sent() == 0);
}

TEST_CASE("the cache is marked as one for backup programs") {
  Site site;
  CHECK(read_file(site.cache.root() / "CACHEDIR.TAG").starts_with("Signature: 8a477f597d28d172789f06886806bc55"));
}

TEST_CASE("a file on a server is looked into by parts, its end once, and no part is taken for another") {
  Site site;
  const std::string body = some_bytes(20 << 20);
  site.server.put("/big", {.body = body});
  RemoteFile file(site.server.url("/big"), body.size());
  const auto text = [&](std::uint64_t at, std::size_t count) {
    return std::string(bundle::as_text(file.view(at, count)));
  };
  CHECK(text(body.size() - 22, 22) == body.substr(body.size() - 22));
  CHECK(text(body.size() - 1000, 22) == body.substr(body.size() - 1000, 22));
  CHECK(site.server.requests().size() == 1);  // the end was kept
  CHECK(text(body.size() - 300'000, 40) == body.substr(body.size() - 300'000, 40));
  CHECK(text(body.size() - 250'000, 40) == body.substr(body.size() - 250'000, 40));
  CHECK(site.server.requests().size() == 2);
  CHECK(text(1000, 100) == body.substr(1000, 100));
  CHECK(text(1100, 100) == body.substr(1100, 100));
  CHECK(site.server.requests().size() == 3);
  for (const UnreliableServer::Request& request : site.server.requests()) CHECK(request.sent < 1 << 20);

  SUBCASE("a server that sends the whole file instead is a failure, and its bytes are not used") {
    site.server.put("/big", {.body = body, .ranges = false});
    CHECK_REFUSED(text(9 << 20, 1), Network, "does not send parts");
    RemoteFile fresh(site.server.url("/big"), body.size());
    CHECK_REFUSED(fresh.view(0, 1), Network, "does not send parts");
  }
  SUBCASE("a file that has become shorter is a failure") {
    site.server.put("/big", {.body = body.substr(0, (9 << 20) + 10)});
    CHECK_REFUSED(text(9 << 20, 1), Network, "cannot be looked into");
  }
}
