// SPDX-License-Identifier: Apache-2.0
// Commits, tags, one tree and an index, made by git itself; see git_facts.hpp.
#include "packager/builds/git_facts.hpp"

#include <algorithm>
#include <sstream>

#include "bundle/core/text_parts.hpp"
#include "packager/builds/git_command.hpp"
#include "packager/files/cache.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMostOfPointer = 1024;
constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec/v1\n";

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

class Checkout {
 public:
  Checkout(const fs::path& folder, const fs::path& scratch) : folder_(folder), scratch_(scratch) {}

  // Empty where git has no answer.
  std::string ask(std::vector<std::string> words) const {
    words.insert(words.begin(), {"-C", folder_.string()});
    const ProcessResult result = run_git(std::move(words), {{"GIT_INDEX_FILE", index_}});
    return result.exit_code == 0 ? result.out : std::string();
  }
  // With `text` as its input.
  void tell(const std::vector<std::string>& words, const std::string& text) const {
    const fs::path input = scratch_ / "input";
    fs::remove(input);
    bundle::write_text(input, text);
    std::vector<std::string> command = {"sh",
                                        "-c",
                                        "input=$1; shift; exec \"$@\" < \"$input\"",
                                        "sh",
                                        input.string(),
                                        "git",
                                        "-C",
                                        folder_.string(),
                                        "-c",
                                        "core.hooksPath=/dev/null",
                                        "-c",
                                        "core.fsmonitor=false",
                                        "-c",
                                        "index.version=2",
                                        "-c",
                                        "core.splitIndex=false"};
    command.insert(command.end(), words.begin(), words.end());
    run_checked(command, {{"GIT_INDEX_FILE", index_}});
  }
  // From here on git's index is this file.
  void use_index(const fs::path& file) { index_ = file.string(); }

 private:
  fs::path folder_, scratch_;
  std::string index_ = (folder_ / ".git/index").string();
};

// Commits up to HEAD, tags of these, and all of HEAD's own files.
std::string objects_of(const Checkout& checkout, const std::string& tags) {
  std::string objects = checkout.ask({"rev-list", "HEAD"}) + checkout.ask({"rev-parse", "HEAD^{tree}"});
  std::istringstream lines(checkout.ask({"ls-tree", "-r", "-t", "--full-tree", "HEAD"}) + tags);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string_view> words = bundle::split(std::string_view(line).substr(0, line.find('\t')), ' ');
    if (words.size() == 3 && words[1] != "commit") objects += std::string(words[2]) + "\n";  // else: of a submodule
    if (words.size() == 2) objects += std::string(words[0]) + "\n";
  }
  return objects;
}

bool is_pointer(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(file, error)) && fs::file_size(file, error) < kMostOfPointer &&
         bundle::read_text(file, kMostOfPointer).starts_with(kPointer);
}

// The bytes of a pointer, from a store beside the repository's other objects; false where they are not there.
bool take_from_store(const fs::path& file, const fs::path& repository) {
  const std::string text = bundle::read_text(file, kMostOfPointer), mark = "\noid sha256:";
  const std::size_t at = text.find(mark);
  const auto digest = at == text.npos ? std::nullopt : bundle::Digest::from_hex(text.substr(at + mark.size(), 64));
  if (!digest) return false;
  const std::string hex = digest->hex();
  for (const char* store : {".git/lfs/objects", "lfs/objects"}) {
    const fs::path bytes = repository / store / hex.substr(0, 2) / hex.substr(2, 2) / hex;
    std::error_code error;
    if (!fs::is_regular_file(bytes, error) || digest_of_file(bytes) != *digest) continue;
    return fs::copy_file(bytes, file, fs::copy_options::overwrite_existing, error);
  }
  return false;
}

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  for (const std::string_view name : bundle::split(list, '\0'))
    if (!name.empty()) names.emplace_back(name);
  return names;
}

}  // namespace

void add_git_facts(const fs::path& checkout, const fs::path& scratch, Tree& tree) {
  std::error_code error;
  if (!fs::exists(checkout / ".git", error) || find_program("git").empty()) return;
  fs::remove_all(scratch);
  fs::create_directories(scratch);
  Checkout git(checkout, scratch);
  const fs::path own_index = first_line(git.ask({"rev-parse", "--absolute-git-dir"}));
  if (own_index.empty()) return;
  git.use_index(own_index / "index");
  const std::string head = first_line(git.ask({"rev-parse", "--verify", "--quiet", "HEAD"}));
  const std::string top = first_line(git.ask({"rev-parse", "--show-toplevel"}));
  if (head.empty() || fs::canonical(checkout, error) != fs::canonical(top, error)) return;
  const std::string tracked = git.ask({"ls-files", "--stage"});
  const std::string of_lfs = git.ask({"ls-files", "-z", ":(attr:filter=lfs)"});
  const std::string tags = git.ask({"for-each-ref", "--merged=HEAD", "--format=%(objectname) %(refname)", "refs/tags"});
  git.tell({"pack-objects", "--quiet", "--threads=1", "--window=0", "--no-reuse-delta", "--no-reuse-object",
            (scratch / "pack").string()},
           objects_of(git, tags));
  git.use_index(scratch / "index");
  git.tell({"update-index", "--index-info"}, tracked);
  // What LFS put there is not what git has of it, and its filter is not there to say so.
  if (!of_lfs.empty()) git.tell({"update-index", "--assume-unchanged", "-z", "--stdin"}, of_lfs);
  for (const fs::directory_entry& entry : fs::directory_iterator(scratch))
    if (const std::string name = entry.path().filename().string();
        name.starts_with("pack-") && (name.ends_with(".pack") || name.ends_with(".idx")))
      tree[".git/objects/pack/" + name] = {.source = entry.path()};
  tree[".git/index"] = {.source = scratch / "index"};
  tree[".git/HEAD"] = {.text = head + "\n"};
  tree[".git/packed-refs"] = {.text = tags};
  tree[".git/refs/.keep"] = {.text = "\n"};  // git takes no folder for a repository without refs
  tree[".git/config"] = {.text = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"};
  if (const fs::path shallow = own_index / "shallow"; fs::is_regular_file(shallow, error))
    tree[".git/shallow"] = {.text = bundle::read_text(shallow, std::uint64_t{1} << 20)};
}

std::vector<std::string> lfs_pointers(const fs::path& checkout, const fs::path& repository,
                                      const std::map<std::string, std::string>& variables, bool bring) {
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"-C", checkout.string()});
    return run_git(std::move(words), variables);
  };
  const ProcessResult listed = run({"ls-files", "-z", ":(attr:filter=lfs)"});
  std::vector<std::string> names = listed.exit_code == 0 ? names_in(listed.out) : std::vector<std::string>();
  std::erase_if(names, [&](const std::string& name) { return !is_pointer(checkout / name); });
  if (names.empty() || !bring) return names;
  if (!find_program("git-lfs").empty()) run({"lfs", "pull"});
  std::erase_if(names, [&](const std::string& name) {
    return !is_pointer(checkout / name) || take_from_store(checkout / name, repository);
  });
  return names;
}

}  // namespace sealift::packager
