// SPDX-License-Identifier: Apache-2.0
#include "offline_repo/catalogue/not_served.hpp"

namespace sealift::offline_repo {

InBoth patched_wheel(const std::string& stem, const std::string& path) {
  return {stem + " carries " + path +
              " as a patch, which only a prefix that has the older wheel can use: it is not served; serve a bundle "
              "that carries it whole",
          stem + " 以补丁形式携带 " + path + "，只有已装有旧版 wheel 的前缀能用它：因此不提供；请提供完整携带它的包"};
}

InBoth rotten_wheel(const std::string& stem, const std::string& path) {
  return {stem + ": " + path + " is not served from there: its bytes on the medium are wrong",
          stem + "：不从该包提供 " + path + "：介质上它的字节有误"};
}

InBoth image_in_part(const std::string& stem, const std::string& image) {
  return {
      stem + ": the image " + image + " is not served from there: a part of it is not carried, or wrong on the medium",
      stem + "：不从该包提供镜像 " + image + "：它有一部分未被携带，或在介质上有误"};
}

InBoth rpms_in_part(const std::string& stem, const std::string& path, bool absent) {
  return {stem + ": its rpm packages are not served from there: " + path +
              (absent ? " is not carried" : " is wrong on the medium"),
          stem + "：不从该包提供 rpm 软件包：" + path + (absent ? " 未被携带" : " 在介质上有误")};
}

InBoth missing_debian_package(const std::string& stem, const std::string& file) {
  return {
      stem + ": " + file + " of its Debian packages is not served: no bundle here carries it, or its bytes are wrong",
      stem + "：不提供其 Debian 软件包中的 " + file + "：这里没有包携带它，或它的字节有误"};
}

InBoth commit_in_part(const std::string& id, const std::string& commit, std::size_t count, const std::string& path) {
  const std::string files = std::to_string(count);
  return {
      id + " at " + commit + " is not served: " + files + " of its files, such as " + path + ", are in no bundle here",
      "不提供 " + id + " 的提交 " + commit + "：它有 " + files + " 个文件（例如 " + path + "）不在这里的任何包中"};
}

InBoth the_bundle(const std::string& stem) {
  return {"the bundle " + stem, "包 " + stem};
}

InBoth the_wheel(const std::string& file_name) {
  return {file_name, file_name};
}

InBoth file_of_model(const std::string& path, const std::string& commit) {
  return {path + " of the model " + commit, "模型 " + commit + " 的 " + path};
}

InBoth file_of_data(const std::string& path, const std::string& commit) {
  return {path + " of the data set " + commit, "数据集 " + commit + " 的 " + path};
}

InBoth file_of_modelscope(const std::string& path, const std::string& commit, const std::string& created) {
  return {path + " of ModelScope's " + commit + " of " + created,
          "ModelScope 的 " + commit + "（" + created + "）的 " + path};
}

InBoth other_bytes(const InBoth& name, const std::string& other, const std::string& folder, bool newer) {
  return {
      "it has other bytes than " + other + " in " + folder + " for " + name.english + (newer ? ", which is newer" : ""),
      "它的 " + name.chinese + " 与 " + folder + " 中的 " + other + " 字节不同" + (newer ? "，而后者较新" : "")};
}

InBoth bundle_left_out(const std::string& stem, const InBoth& why) {
  return {stem + " is left out: " + why.english, stem + " 未列入：" + why.chinese};
}

}  // namespace sealift::offline_repo
