// SPDX-License-Identifier: Apache-2.0
#include "trainer/tuning/lora.hpp"

#include "trainer/models/decoder.hpp"
#include "trainer/models/stored_experts.hpp"
#include "trainer/tuning/lora_targets.hpp"

#include <cmath>
#include <set>

namespace sealift::trainer {
namespace {

constexpr const char* kName = "lora";
constexpr const char* kEmbeddingName = "embed_tokens";
constexpr const char* kHeadName = "lm_head";
constexpr const char* kMagnitude = "lora_magnitude_vector";
constexpr std::string_view kMagnitudeWeight = "lora_magnitude_vector.weight";

/// A parameter under a name of its own, as PEFT has it.
class Factor final : public torch::nn::Module {
 public:
  Factor(at::IntArrayRef sizes, const at::TensorOptions& options)
      : weight(register_parameter("weight", torch::empty(sizes, options))) {}
  at::Tensor weight;
};

/// Fills one whole tensor of an adapter. Magnitudes are not random and not among them.
train::InitFunction::Function fill_factors(const LoraOptions& options) {
  return [options](const std::string& name, at::Tensor tensor, at::Generator random) {
    if (name.ends_with(".lora_B.weight")) {
      tensor.zero_();
    } else if (options.init == LoraInit::Gaussian) {
      tensor.normal_(0, 1.0 / static_cast<double>(tensor.size(0)), random);
    } else {  // kaiming_uniform_ with a = sqrt(5)
      const double bound = 1 / std::sqrt(static_cast<double>(tensor.size(1)));
      tensor.uniform_(-bound, bound, random);
    }
  };
}

/// Values for adapters of a model that has its own.
void fill_in_place(const std::string& path, const ProjectionImpl& projection, const LoraOptions& options,
                   std::uint64_t seed) {
  at::NoGradGuard no_grad;
  train::InitFunction init(fill_factors(options), seed);
  for (const auto& item : projection.adapter()->named_parameters()) {
    auto tensor = item.value();
    if (item.key() == kMagnitudeWeight) {
      tensor.copy_(at::linalg_vector_norm(projection.weight.to(tensor.scalar_type()), 2, {1}));
    } else {
      init.read(path + "." + kName + "." + item.key(), tensor.sizes(), 0, tensor.view({-1}));
    }
  }
}

/// output + low · upᵀ, added by the multiplication itself: no pass over what is as large as the output.
at::Tensor plus_product(const at::Tensor& output, const at::Tensor& low, const at::Tensor& up) {
  if (output.scalar_type() != low.scalar_type() || up.scalar_type() != low.scalar_type()) {
    return (output + torch::linear(low, up)).to(output.scalar_type());
  }
  return at::addmm(output.flatten(0, -2), low.flatten(0, -2), up.t()).view(output.sizes());
}

/// Whether `module` is the head of a model whose head is its embedding: training one, which must be named, trains both.
bool is_tied_head(const torch::nn::Module& model, const std::string& module,
                  const std::vector<std::string>& modules_to_save) {
  const auto paths = model.named_modules().keys();
  const auto is_there = [&](const std::string& name) {
    return std::any_of(paths.begin(), paths.end(), [&](const auto& path) { return names_path(name, path); });
  };
  const auto names_embedding = [](const auto& each) { return last_part(each) == kEmbeddingName; };
  return module == kHeadName && !is_there(kHeadName) && is_there(kEmbeddingName) &&
         std::any_of(modules_to_save.begin(), modules_to_save.end(), names_embedding);
}

/// Lets train what `modules_to_save` names, in fp32.
void unfreeze(torch::nn::Module& model, const std::vector<std::string>& modules_to_save) {
  std::set<std::string> names;
  std::vector<std::size_t> found(modules_to_save.size());
  for (const auto& item : model.named_modules()) {
    auto& module = *item.value();
    if (dynamic_cast<ProjectionImpl*>(&module) || dynamic_cast<train::SplitAlong*>(&module)) continue;
    const auto parameters = module.parameters(/*recurse=*/false);
    if (parameters.empty() || !module.children().empty()) continue;
    names.insert(last_part(item.key()));
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!item.key().ends_with(modules_to_save[i])) continue;
      ++found[i];
      for (auto parameter : parameters) {
        if (parameter.scalar_type() == at::kHalf || parameter.scalar_type() == at::kBFloat16)
          parameter.set_data(parameter.to(at::kFloat));
        parameter.set_requires_grad(true);
      }
    }
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    TORCH_CHECK(found[i] > 0 || is_tied_head(model, modules_to_save[i], modules_to_save), "modules_to_save has '",
                modules_to_save[i], "'; no module of this name can be trained ", "whole beside adapters; there are: ",
                c10::Join(", ", std::vector<std::string>(names.begin(), names.end())));
  }
}

}  // namespace

void check(const LoraOptions& options) {
  TORCH_CHECK(options.rank >= 1, "lora_rank is ", options.rank, "; expected at least 1");
  TORCH_CHECK(std::isfinite(options.alpha), "lora_alpha is ", options.alpha, "; expected a finite number");
  TORCH_CHECK(options.dropout >= 0 && options.dropout < 1, "lora_dropout is ", options.dropout,
              "; expected at least 0 and below 1");
  TORCH_CHECK(!options.target_modules.empty(), "target_modules is empty; name projections, or all-linear");
  for (const auto& module : options.modules_to_save) {
    TORCH_CHECK(!module.empty(), "modules_to_save has an empty name");
  }
}

LoraAdapter::LoraAdapter(const ProjectionImpl& base, const LoraOptions& options, const std::string& path)
    : options_(options), bias_(base.bias) {
  const auto own = options_at(options, path);
  scaling_ = own.scaling();
  const auto dtype = base.weight.scalar_type();
  const bool narrow = dtype == at::kHalf || dtype == at::kBFloat16;
  const auto like = base.weight.options().dtype(narrow ? at::kFloat : dtype).requires_grad(false);
  const auto out = base.weight.size(0), in = base.weight.size(1);
  const auto factor = [&](const char* name, at::IntArrayRef sizes) {
    return register_module(name, std::make_shared<Factor>(sizes, like))->weight;
  };
  a_ = factor("lora_A", {own.rank, in});
  b_ = factor("lora_B", {out, own.rank});
  if (options.dora) magnitude_ = factor(kMagnitude, {out});
}

at::Tensor LoraAdapter::apply_to(const at::Tensor& output, const at::Tensor& input, const at::Tensor& weight) {
  if (!enabled_) return output;
  const bool drops = options_.dropout > 0 && is_training();
  const auto x =
      drops ? torch::dropout(input.to(a_.scalar_type()), options_.dropout, true) : input.to(a_.scalar_type());
  const auto low = torch::linear(x, a_);
  if (!magnitude_.defined()) return plus_product(output, low * scaling_, b_);
  const auto change = torch::linear(low, b_) * scaling_;
  return (output + stretched(drops ? at::Tensor() : output, x, weight, change)).to(output.scalar_type());
}

std::optional<LinearPart> LoraAdapter::factors() const {
  if (!enabled_) return LinearPart{};
  if (magnitude_.defined() || (options_.dropout > 0 && is_training())) return {};
  return LinearPart{.weight = {}, .bias = {}, .a = a_, .b = b_, .scaling = scaling_};
}

/// What DoRA adds. `output`: the projection's of the same `input`; undefined: compute it.
at::Tensor LoraAdapter::stretched(const at::Tensor& output, const at::Tensor& input, const at::Tensor& weight,
                                  const at::Tensor& change) const {
  const auto w = weight.to(input.scalar_type());
  // The length is a constant of the gradient: the paper's section 4.3.
  const auto length = at::linalg_vector_norm(w.detach() + scaling_ * at::mm(b_, a_).detach(), 2, {1});
  const auto stretch = (magnitude_ / length).view({1, -1});
  const auto base = !output.defined() ? torch::linear(input, w) : bias_.defined() ? output - bias_ : output;
  return (stretch - 1) * base + stretch * change;
}

at::Tensor merged(const at::Tensor& weight, const at::Tensor& a, const at::Tensor& b, const at::Tensor& magnitude,
                  double scaling) {
  at::NoGradGuard no_grad;
  const auto change = at::mm(b, a) * scaling;
  if (!magnitude.defined()) return weight + change.to(weight.scalar_type());
  const auto sum = weight.to(change.scalar_type()) + change;
  return (sum * (magnitude / at::linalg_vector_norm(sum, 2, {1})).unsqueeze(1)).to(weight.scalar_type());
}

std::vector<std::string> add_lora(torch::nn::Module& model, const LoraOptions& options, std::uint64_t seed) {
  check(options);
  const auto targets = find_targets(model, options);
  for (auto& parameter : model.parameters()) parameter.set_requires_grad(false);
  unfreeze(model, options.modules_to_save);
  std::vector<std::string> paths;
  for (const auto& [path, projection] : targets) {
    const auto adapter = std::make_shared<LoraAdapter>(*projection, options, path);
    adapter->train(projection->is_training());
    projection->adapt(kName, adapter);
    if (!projection->weight.is_meta()) fill_in_place(path, *projection, options, seed);
    paths.push_back(path);
  }
  return paths;
}

bool is_adapters(const std::string& name) {
  return name.find(".lora.lora_") != std::string::npos;
}

bool is_saved_whole(const std::string& name, const std::vector<std::string>& modules_to_save) {
  const auto module = name.substr(0, name.rfind('.'));
  return std::any_of(modules_to_save.begin(), modules_to_save.end(),
                     [&](const auto& target) { return module.ends_with(target); });
}

LoraSource::LoraSource(train::Source& base, const LoraOptions& options, std::uint64_t seed)
    : base_(&base), factors_(fill_factors(options), seed) {}

void LoraSource::check(const std::vector<train::WantedTensor>& wanted) {
  std::vector<train::WantedTensor> rest;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(rest),
               [](const auto& tensor) { return !is_adapters(tensor.name); });
  std::map<std::string, train::WantedTensor> by_name;
  for (const auto& tensor : rest) by_name.emplace(tensor.name, tensor);
  for (const auto& tensor : wanted) {
    if (!tensor.name.ends_with(kMagnitudeWeight)) continue;
    const auto path = tensor.name.substr(0, tensor.name.size() - kMagnitudeWeight.size() - std::strlen(kName) - 1);
    weights_.emplace(tensor.name, by_name.at(path + "weight"));
  }
  base_->check(rest);
}

void LoraSource::read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin, at::Tensor out) {
  if (!is_adapters(name)) return base_->read(name, sizes, begin, out);
  const auto magnitude = weights_.find(name);
  if (magnitude == weights_.end()) return factors_.read(name, sizes, begin, out);
  at::NoGradGuard no_grad;
  const auto& weight = magnitude->second;
  const auto in = weight.sizes[1];
  const auto rows = std::max<std::int64_t>(1, train::kPieceBytes / 4 / std::max<std::int64_t>(1, in));
  for (std::int64_t first = 0; first < out.numel(); first += rows) {
    const auto n = std::min(rows, out.numel() - first);
    const auto piece = torch::empty({n * in}, out.options().dtype(weight.dtype));
    base_->read(weight.name, weight.sizes, (begin + first) * in, piece);
    out.narrow(0, first, n).copy_(at::linalg_vector_norm(piece.view({n, in}).to(out.scalar_type()), 2, {1}));
  }
}

std::map<std::string, std::shared_ptr<LoraAdapter>> find_adapters(const torch::nn::Module& model) {
  std::map<std::string, std::shared_ptr<LoraAdapter>> result;
  for (const auto& item : model.named_modules()) {
    auto adapter = std::dynamic_pointer_cast<LoraAdapter>(item.value());
    if (adapter) result.emplace(item.key().substr(0, item.key().size() - std::strlen(kName) - 1), std::move(adapter));
  }
  return result;
}

train::ExportOptions merge_adapters(const torch::nn::Module& model, train::Parallel& parallel, train::Source* stored) {
  std::map<std::string, at::Tensor> values;
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const auto& parameter : parallel.parameters()) {
    shapes[parameter.name] = parameter.sizes;
    if (!is_adapters(parameter.name)) continue;
    const auto numel = c10::multiply_integers(parameter.sizes);
    values[parameter.name] = train::detail::gather_slab(parameter, parallel.holders(), 0, numel).view(parameter.sizes);
  }
  const auto* decoder = dynamic_cast<const DecoderImpl*>(&model);
  const auto file_tensors = decoder ? file_tensors_of(decoder->config()) : train::FileTensors(stored_tensors);
  for (const auto& parameter : parallel.parameters()) {
    for (const auto& [name, sizes] : file_tensors(parameter.name, parameter.sizes)) shapes[name] = sizes;
  }
  std::map<std::string, double> scalings;  // of what is adapted, by the name of the weight
  bool whole_rows = false;
  std::vector<std::string> whole;
  for (const auto& [path, adapter] : find_adapters(model)) {
    scalings.emplace(path + ".weight", adapter->scaling());
    whole_rows |= adapter->options().dora;
    whole = adapter->options().modules_to_save;
  }
  train::ExportOptions options;
  options.stored = stored;
  // DoRA needs a row's length, so no row may be cut: a tensor at a time.
  if (whole_rows) options.slab_bytes = std::numeric_limits<std::int64_t>::max();
  options.name = [](const std::string& name) { return is_adapters(name) ? std::string() : name; };
  options.change = [values, shapes, scalings, whole, stored](const std::string& name, std::int64_t first,
                                                             at::Tensor slab) {
    // What is frozen is read again as it is stored: in memory it may have been rounded to 16 bits.
    const auto shape = shapes.find(name);
    const bool is_read = stored && shape != shapes.end() && !is_saved_whole(name, whole);
    const auto as_stored = [&](std::int64_t from, std::int64_t count) {
      auto exact = torch::empty({count}, at::kFloat);
      stored->read(name, shape->second, from, exact);
      return exact;
    };
    const auto found = scalings.find(name);
    if (found == scalings.end()) return is_read ? as_stored(first, slab.numel()) : slab;
    const auto factor = [&](const char* which) {
      const auto value =
          values.find(name.substr(0, name.size() - std::strlen("weight")) + kName + "." + which + ".weight");
      return value == values.end() ? at::Tensor() : value->second;
    };
    // Whole rows around the slab: what is beyond it is not used.
    const auto in = shapes.at(name)[1], begin = first / in, end = (first + slab.numel() + in - 1) / in;
    auto rows = torch::zeros({(end - begin) * in}, is_read ? slab.options().dtype(at::kFloat) : slab.options());
    rows.narrow(0, first - begin * in, slab.numel()).copy_(is_read ? as_stored(first, slab.numel()) : slab);
    const auto magnitude = factor(kMagnitude);
    const auto changed =
        merged(rows.view({end - begin, in}), factor("lora_A"), factor("lora_B").narrow(0, begin, end - begin),
               magnitude.defined() ? magnitude.narrow(0, begin, end - begin) : magnitude, found->second);
    return changed.view({-1}).narrow(0, first - begin * in, slab.numel()).contiguous();
  };
  return options;
}

}  // namespace sealift::trainer
