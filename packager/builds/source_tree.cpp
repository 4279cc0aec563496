// SPDX-License-Identifier: Apache-2.0
// Clones or reads a source and writes it as one tar; see source_tree.hpp.
#include "packager/builds/source_tree.hpp"

#include "packager/builds/git_command.hpp"
#include "packager/builds/git_facts.hpp"
#include "packager/files/tree.hpp"
#include "packager/host/url.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMostLinked = 100'000;  // files behind links of a folder

std::string git(const std::vector<std::string>& words, const SourcePackage& source, const GitLogins& logins) {
  const ProcessResult result = run_git(words, logins.variables());
  if (result.exit_code != 0)
    throw Error(ErrorCode::Network, {.what = "git cannot fetch " + source.title(),
                                     .where = without_credentials(source.url) + " at " + source.commit,
                                     .got = without_logins(result.err)});
  return result.out;
}

fs::path clone(const SourcePackage& source, const fs::path& scratch, GitLogins logins) {
  const fs::path folder = scratch / (source.name + ".git");
  fs::remove_all(folder);
  const std::string address = logins.take("git+" + source.url, source.title()).substr(4);
  git({"clone", "--quiet", "--no-checkout", "--", address, folder.string()}, source, logins);
  git({"-C", folder.string(), "checkout", "--quiet", "--detach", source.commit, "--"}, source, logins);
  // A branch or tag of that name would have been taken first.
  if (const std::string head = git({"-C", folder.string(), "rev-parse", "HEAD"}, source, logins);
      head != source.commit + "\n")
    throw Error(ErrorCode::Digest, {.what = "git has checked out another commit than the locked one",
                                    .where = without_credentials(source.url),
                                    .expected = source.commit,
                                    .got = head});
  git({"-C", folder.string(), "submodule", "--quiet", "update", "--init", "--recursive"}, source, logins);
  return folder;
}

bool left_out(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  return name == ".git" || name == "__pycache__" || name.ends_with(".pyc") ||
         (entry.is_directory() && fs::exists(entry.path() / "pyvenv.cfg"));
}

void warn_of_pointers(const SourcePackage& source, const std::vector<std::string>& names, bundle::Progress& progress) {
  if (names.empty()) return;
  progress.warn(source.title() + " has " + std::to_string(names.size()) +
                " file(s) whose bytes only Git LFS has, such as " + names.front() +
                ": the build gets pointers in their place (install git-lfs, or `git lfs pull` in the folder, and lock "
                "again)");
}

// A folder's tree. A link that leads out of it to something beside it (as projects of a repository share files) becomes
// what it leads to, as a build in its place would see it; any other is kept, and judged by write_tree_tar.
class Gathering {
 public:
  Gathering(const fs::path& top, bool follows) : top_(fs::canonical(top)), follows_(follows) {
    beside_ = top_.parent_path();
    std::error_code error;
    for (fs::path above = beside_; above != above.root_path(); above = above.parent_path())
      if (fs::exists(above / ".git", error)) {
        beside_ = above;
        break;
      }
  }

  Tree take() {
    gather(top_, "");
    return std::move(tree_);
  }

 private:
  void gather(const fs::path& folder, const std::string& place) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (left_out(entry)) continue;
      add(entry, place + entry.path().filename().string());
    }
  }

  void add(const fs::directory_entry& entry, const std::string& inner) {
    switch (entry.symlink_status().type()) {
      case fs::file_type::directory:
        gather(entry.path(), inner + "/");
        break;
      case fs::file_type::symlink:
        add_link(entry, inner);
        break;
      case fs::file_type::regular:
        tree_[inner] = {.source = entry.path(),
                        .executable = (entry.status().permissions() & fs::perms::owner_exec) != fs::perms::none};
        if (tree_.size() > kMostLinked && links_ > 0)
          throw Error(ErrorCode::Format, {.what = "links of a source lead to more than can be packed",
                                          .where = top_.string(),
                                          .expected = std::to_string(kMostLinked) + " files at most",
                                          .next = "remove links that lead to a folder above themselves"});
        break;
      default:
        break;  // sockets and pipes are not source
    }
  }

  void add_link(const fs::directory_entry& entry, const std::string& inner) {
    std::error_code error;
    const fs::path real = fs::canonical(entry.path(), error);
    const auto is_below = [&](const fs::path& folder) {
      const fs::path relative = real.lexically_relative(folder);
      return !relative.empty() && *relative.begin() != "..";
    };
    const bool circle = top_.string().starts_with(real.string() + "/");
    if (!follows_ || error || is_below(top_) || real == top_ || circle || !is_below(beside_) || ++links_ > kMostDepth) {
      tree_[inner] = {.text = fs::read_symlink(entry.path()).string(), .link = true};
      return;
    }
    add(fs::directory_entry(real), inner);
  }

  static constexpr int kMostDepth = 1000;  // links that are followed
  fs::path top_, beside_;
  bool follows_;
  int links_ = 0;
  Tree tree_;
};

}  // namespace

bundle::Digest store_source(const SourcePackage& source, const Cache& cache, const fs::path& scratch,
                            const GitLogins& logins, bundle::Progress& progress) {
  const bool of_git = source.kind == SourceKind::Git;
  const fs::path folder = of_git ? clone(source, scratch, logins) : source.folder;
  const std::string repository = source.url.starts_with("file://") ? source.url.substr(7) : source.url;
  warn_of_pointers(source, lfs_pointers(folder, of_git ? fs::path(repository) : folder, logins.variables(), of_git),
                   progress);
  Tree tree = Gathering(folder, !of_git).take();
  add_git_facts(folder, scratch / (source.name + ".facts"), tree);
  const fs::path file = scratch / (source.name + ".tar");
  fs::remove(file);
  const TreeTar tar = write_tree_tar(tree, file);
  cache.adopt(file, tar.sha256);
  return tar.sha256;
}

}  // namespace sealift::packager
