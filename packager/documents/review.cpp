// SPDX-License-Identifier: Apache-2.0
// Facts -> page. Each word stands beside its translation, so that no language can lack one.
#include "packager/documents/review.hpp"

#include <map>

#include "packager/documents/review_page.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/payload/bundle_folder.hpp"

namespace sealift::packager {

namespace {

// "1.2 GB (1234567890)": for people, and exactly.
std::string size_text(std::uint64_t bytes) {
  return bytes < 1000 ? bundle::human_size(bytes) : bundle::human_size(bytes) + " (" + std::to_string(bytes) + ")";
}

class Review {
 public:
  Review(const BundleFacts& facts, Language language) : facts_(facts), chinese_(language == Language::Chinese) {}

  Page page() const {
    const bundle::Manifest& manifest = facts_.manifest();
    return {
        .language = chinese_ ? "zh-Hans" : "en",
        .title = word("Review of the bundle ", "包审阅页：") + manifest.stem(),
        .note = word("All signatures and every chunk of the payload were checked when this page was made, beginning "
                     "at the root that is named here; digests of entries are the signed ones. Compare the "
                     "root's fingerprint with what its owner told you.",
                     "生成本页时，已从下列根（root）开始核验全部签名和载荷的每一块；各条目的摘要即签名所覆盖的摘要。"
                     "请将根指纹与其所有者另行告知的指纹核对。"),
        .sections = {what(), whose(), how_big(), warnings(), files(), licences(), contents()}};
  }

 private:
  std::string word(const char* english, const char* chinese) const { return chinese_ ? chinese : english; }

  PageSection what() const {
    const bundle::Manifest& manifest = facts_.manifest();
    std::string imports;
    std::string startup;
    for (const bundle::Digest& file : manifest.environment.startup_files)
      startup += (startup.empty() ? "" : ", ") + bundle::fingerprint_text(file);
    for (const std::string& module : manifest.environment.imports) imports += (imports.empty() ? "" : ", ") + module;
    return {
        .title = word("What", "内容"),
        .header = {},
        .rows = {{word("Name", "名称"), manifest.name},
                 {word("Version", "版本"), std::to_string(manifest.version)},
                 {word("Channel", "通道"), manifest.channel},
                 {word("Created", "创建时间"), manifest.created},
                 {word("For", "目标系统"), manifest.target.arch + ", glibc " + manifest.target.glibc.text()},
                 {word("Modules that must load", "必须可导入的模块"), imports},
                 {word("Files that run whenever Python starts, by SHA-256", "Python 每次启动都会运行的文件（SHA-256）"),
                  startup.empty() ? word("none", "无") : startup},
                 {word("Packages with files in another one's", "在其他软件包目录内安装文件的软件包"), shared()},
                 {word("Built from source, in a sandbox", "在沙箱内由源码构建"), built(bundle::WheelBuild::Sandboxed)},
                 {word("Built outside of a sandbox", "在沙箱外构建"), built(bundle::WheelBuild::Unsandboxed)},
                 {word("Manifest", "清单摘要"), bundle::fingerprint_text(facts_.source.identity())},
                 {word("Delta to the inventory", "增量所依据的目标机清单"),
                  manifest.base ? bundle::fingerprint_text(*manifest.base)
                  : carries_image_alone(manifest)
                      ? word("none: what is not carried is in the image", "无：未携带的内容在映像中")
                      : word("none: everything is carried", "无：全部携带")}}};
  }

  // Who has files in whose package, as the signed manifest says: "NAME.whl: FOLDER".
  std::string shared() const {
    std::string text;
    for (const std::string& one : bundle::packages_shared(facts_.manifest()))
      text += (text.empty() ? "" : ", ") + shown(one);
    return text.empty() ? word("none", "无") : text;
  }

  // The wheels that were built on the packing machine, as the signed manifest says.
  std::string built(bundle::WheelBuild build) const {
    std::string names;
    for (const std::string& name : wheels_built(facts_.manifest(), build))
      names += (names.empty() ? "" : ", ") + shown(name);
    return names.empty() ? word("none", "无") : names;
  }

  PageSection whose() const {
    const bundle::Root& root = facts_.source.root();
    PageSection section{
        .title = word("Whose", "签署方"),
        .header = {},
        .rows = {
            {word("Root", "根（root）"), root.name + ", " + word("version ", "版本 ") + std::to_string(root.version)},
            {word("Root's fingerprint", "根指纹"), bundle::fingerprint_text(facts_.source.root_name().fingerprint)}}};
    for (const bundle::Digest& signer : facts_.source.signers()) {
      const auto key = root.keys.find(signer);
      section.rows.push_back(
          {word("Signed by the key", "签名密钥"),
           bundle::fingerprint_text(signer) + (key == root.keys.end() ? "" : ", " + shown(key->second.algorithm))});
    }
    return section;
  }

  PageSection how_big() const {
    struct Sum {
      std::uint64_t count = 0, size = 0;
    };
    std::map<std::string_view, Sum> sums;
    Sum absent;
    std::uint64_t installed = 0, installed_files = 0;
    for (const bundle::Entry& entry : facts_.manifest().entries) {
      Sum& sum = entry.absent ? absent : sums[sort_of(entry)];
      ++sum.count;
      sum.size += entry.size;
      installed += entry.installed_size;
      installed_files += entry.installed_files;
    }
    PageSection section{.title = word("How big", "大小"),
                        .header = {word("Kind", "类别"), word("Number", "数量"), word("Bytes", "字节数")},
                        .rows = {}};
    for (const auto& [sort, sum] : sums)
      section.rows.push_back({kind_word(sort), std::to_string(sum.count), size_text(sum.size)});
    if (absent.count != 0)
      section.rows.push_back({carries_image_alone(facts_.manifest())
                                  ? word("Not carried, the image was made of it", "未携带（映像由其制成）")
                                  : word("Not carried, the target has it", "未携带（目标机已有）"),
                              std::to_string(absent.count), size_text(absent.size)});
    section.rows.push_back({word("Payload, in volumes", "载荷（卷）"),
                            std::to_string(facts_.manifest().payload.volumes.size()),
                            size_text(facts_.manifest().payload.size)});
    section.rows.push_back(
        {word("Installed, at most", "安装后最多"), std::to_string(installed_files), size_text(installed)});
    return section;
  }

  PageSection warnings() const {
    PageSection section{.title = word("Warnings about the choice of packages, by the lock, which is not signed",
                                      "选择软件包时的警告（来自未签名的 lock）"),
                        .header = {word("Warning", "警告")},
                        .rows = {}};
    if (!facts_.lock)
      section.rows.push_back({word("not known: no lock was named (--lock)", "未知：未给出 lock（--lock）")});
    else if (facts_.lock->warnings.empty())
      section.rows.push_back({word("none", "无")});
    else
      for (const std::string& warning : facts_.lock->warnings) section.rows.push_back({shown(warning)});
    return section;
  }

  PageSection files() const {
    const bundle::Manifest& manifest = facts_.manifest();
    const bundle::Payload& payload = manifest.payload;
    PageSection section{.title = word("Files on the medium", "介质上的文件"),
                        .header = {word("File", "文件"), word("Bytes", "字节数"), word("Digest", "摘要")},
                        .rows = {}};
    section.rows.push_back({manifest.stem() + std::string(bundle::kSealSuffix), size_text(facts_.seal_size),
                            bundle::fingerprint_text(facts_.seal)});
    section.rows.push_back({manifest.stem() + std::string(bundle::kChunksSuffix),
                            size_text(payload.chunk_count() * bundle::Digest::kSize),
                            name_of(payload.digest) + ":" + payload.chunk_list_digest.hex()});
    for (std::size_t i = 0; i < payload.volumes.size(); ++i)
      section.rows.push_back({payload.volumes[i].name, size_text(payload.volumes[i].size),
                              bundle::fingerprint_text(facts_.volumes.at(i))});
    for (const bundle::Companion& companion : manifest.companions)
      section.rows.push_back({companion.name, size_text(companion.size), bundle::fingerprint_text(companion.sha256)});
    return section;
  }

  PageSection licences() const {
    PageSection section{
        .title = word("Licences, as packages and models state them", "许可证（以软件包和模型自述为准）"),
        .header = {word("Package, model or data", "软件包、模型或数据"), word("Version", "版本"),
                   word("Licence", "许可证"), word("Texts collected", "已收集的许可证文本数")},
        .rows = {}};
    for (const auto& [path, wheel] : facts_.wheels)
      section.rows.push_back({wheel.facts.project, wheel.facts.version,
                              !wheel.carried                  ? word("not carried", "未携带")
                              : wheel.facts.licence().empty() ? word("none stated", "未声明")
                                                              : wheel.facts.licence(),
                              std::to_string(wheel.licences.files.size())});
    for (const BundledModel& model : facts_.models)
      section.rows.push_back({shown(model.name), model.commit,
                              !model.licence_known          ? word("not carried", "未携带")
                              : model.stated.text().empty() ? word("none stated", "未声明")
                                                            : model.stated.text(),
                              std::to_string(model.licences.files.size())});
    if (const auto& runtime = facts_.manifest().environment.runtime)
      section.rows.push_back({"glibc", runtime->glibc.text(), kGlibcLicence, "0"});
    for (const auto& [path, deb] : facts_.debs)
      section.rows.push_back({deb.name, deb.version + ", " + deb.architecture,
                              word("in the package, not opened", "在软件包内，未读取"), "0"});
    for (const auto& [path, rpm] : facts_.rpms)
      section.rows.push_back({rpm.name, rpm.version + ", " + rpm.architecture,
                              rpm.licence.empty() ? word("none stated", "未声明") : rpm.licence, "0"});
    return section;
  }

  PageSection contents() const {
    PageSection section{.title = word("Contents", "全部条目"),
                        .header = {word("Kind", "类别"), word("Path", "路径"), word("Bytes", "字节数"), "SHA-256"},
                        .rows = {}};
    for (const bundle::Entry& entry : facts_.manifest().entries)
      section.rows.push_back({kind_word(sort_of(entry)) + (entry.absent ? word(", not carried", "（未携带）") : ""),
                              shown(entry.path.text()), size_text(entry.size), entry.sha256.hex()});
    return section;
  }

  std::string kind_word(std::string_view sort) const {
    static const std::map<std::string_view, std::string> kChinese = {
        {"wheel", "Python 软件包"},   {"interpreter", "解释器"}, {"program", "程序"},      {"model", "模型"},
        {"kernel", "编译好的核函数"}, {"data", "数据"},          {"deb", "Debian 软件包"}, {"rpm", "rpm 软件包"},
        {"image", "容器镜像"},        {"squashfs", "环境映像"},  {"file", "文件"}};
    return chinese_ ? kChinese.at(sort) : std::string(sort);
  }

  const BundleFacts& facts_;
  bool chinese_;
};

}  // namespace

std::string review_html(const BundleFacts& facts, Language language) {
  return page_html(Review(facts, language).page());
}

std::string review_text(const BundleFacts& facts, Language language) {
  return page_text(Review(facts, language).page());
}

}  // namespace sealift::packager
