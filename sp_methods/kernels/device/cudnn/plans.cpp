// SPDX-License-Identifier: Apache-2.0
// cuDNN's attention through cudnn-frontend, and the search for libcudnn.so.9, which is opened when
// the program runs: no build needs it.
//
// Source: NVIDIA/cudnn-frontend, docs/operations/Attention.md.
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <unordered_map>

#include "collectives/executors/cuda/library_search.hpp"
#include "collectives/schedule/errors.hpp"
#include "sp_methods/kernels/contracts.hpp"
#include "sp_methods/kernels/device/cudnn/attention_plan.cuh"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace baton {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

constexpr std::size_t oldest = 90600;  // the first with causal masks of any length
constexpr const char* path_variable = "BATON_CUDNN_LIBRARY";
constexpr const char* deterministic_variable = "BATON_CUDNN_DETERMINISTIC";

/// Numbers of a plan's tensors, by which cuDNN gets their memory.
enum Uid : std::int64_t { uid_q = 1, uid_k, uid_v, uid_o, uid_stats, uid_d_o, uid_dq, uid_dk, uid_dv };

bool is_deterministic() {
  const char* value = std::getenv(deterministic_variable);
  return value != nullptr && std::string(value) != "0" && *value != '\0';
}

/// Names the CUDA runtime that cudnn-frontend should use. It would open one by a name that the
/// loader may not find, and warn of another one.
void choose_runtime() {
  const std::string name = "libcudart.so." + std::to_string(CUDART_VERSION / 1000);
  std::vector<std::string> names{name};
  for (const char* folder : {"nvidia/cu13/lib/", "nvidia/cuda_runtime/lib/"})
    for (std::string& file : in_pythons(folder + name)) names.push_back(std::move(file));
  for (const char* folder : {"/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"})
    names.push_back(folder + name);
  std::string which;
  if (opened(names, &which) != nullptr) setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", which.c_str(), 0);
}

/// Opens cuDNN. Returns the reason if it is missing, else an empty text.
std::string open_library() {
  std::vector<std::string> names{"libcudnn.so.9"};
  if (const char* path = std::getenv(path_variable)) {
    names = {path};
  } else {
    for (std::string& file : in_pythons("nvidia/cudnn/lib/libcudnn.so.9")) names.push_back(std::move(file));
  }
  fe::cudnn_dlhandle = opened(names);
  if (fe::cudnn_dlhandle == nullptr && std::getenv(path_variable) != nullptr)
    return std::string("cuDNN 9 not found: ") + path_variable + " is " + names[0] + ": " + dlerror();
  if (fe::cudnn_dlhandle == nullptr)
    return std::string("cuDNN 9 not found: neither the loader nor a Python in PATH has libcudnn.so.9; set ") +
           path_variable + " to its path";
  if (dlsym(fe::cudnn_dlhandle, "cudnnGetVersion") == nullptr)
    return "cuDNN 9 not found: the library that was opened in its place has no cudnnGetVersion";
  if (const std::size_t version = fe::detail::get_backend_version(); version < oldest)
    return "cuDNN " + std::to_string(version) + " is older than 9.6, the first that is supported";
  choose_runtime();
  return {};
}

Refusal lacks_cudnn() {
  static const std::string missing = open_library();
  return missing;
}

std::string cudnn_version() {
  const std::size_t version = fe::detail::get_backend_version();
  return std::to_string(version / 10000) + '.' + std::to_string(version / 100 % 100) + '.' +
         std::to_string(version % 100) + (is_deterministic() ? " deterministic" : "");
}

/// Throws SystemError with cuDNN's text and the sizes if `status` is an error.
void require(fe::error_t status, const AttentionSizes& sizes) {
  if (status.is_good()) return;
  std::ostringstream text;
  text << "cuDNN " << cudnn_version() << " cannot attend " << (sizes.backward ? "backward" : "forward")
       << " from " << sizes.queries << " queries to " << sizes.keys << " keys, " << sizes.heads
       << " heads on " << sizes.key_heads << ", d_k " << sizes.d_k << ", d_v " << sizes.d_v
       << (sizes.causal ? ", causal: " : ": ") << status.get_message();
  throw SystemError(text.str());
}

/// The cuDNN handle of this process's GPU, which exists until the process ends.
cudnnHandle_t handle() {
  static const cudnnHandle_t one = [] {
    cudnnHandle_t made = nullptr;
    const cudnnStatus_t status = fe::detail::create_handle(&made);
    if (status != CUDNN_STATUS_SUCCESS)
      throw SystemError("cuDNN gives no handle: error " + std::to_string(static_cast<int>(status)));
    return made;
  }();
  return one;
}

/// Describes a tensor [tokens, heads, width] as cuDNN's [1, heads, tokens, width].
void lay_out(const Tensor& tensor, std::int64_t tokens, std::int64_t heads, std::int64_t width) {
  tensor->set_dim({1, heads, tokens, width}).set_stride({tokens * heads * width, width, heads * width, 1});
}

class CudnnPlan : public AttentionPlan {
 public:
  explicit CudnnPlan(const AttentionSizes& sizes) : sizes_(sizes) {
    graph_.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    sizes.backward ? add_backward() : add_forward();
    require(graph_.build(handle(), {fe::HeurMode_t::A}), sizes_);
    std::int64_t bytes = 0;
    require(graph_.get_workspace_size(bytes), sizes_);
    workspace_bytes_ = static_cast<std::size_t>(bytes);
  }

  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  void run(cudaStream_t stream, const AttentionPointers& x, void* workspace) const override {
    // The map has one type of pointer, for what cuDNN reads too.
    std::unordered_map<std::int64_t, void*> memory{{uid_q, std::bit_cast<void*>(x.q)},
                                                   {uid_k, std::bit_cast<void*>(x.k)},
                                                   {uid_v, std::bit_cast<void*>(x.v)},
                                                   {uid_o, x.o},
                                                   {uid_stats, x.stats}};
    if (sizes_.backward)
      memory.insert({{uid_d_o, std::bit_cast<void*>(x.d_o)}, {uid_dq, x.dq}, {uid_dk, x.dk}, {uid_dv, x.dv}});
    const cudnnStatus_t status = fe::detail::set_stream(handle(), stream);
    if (status != CUDNN_STATUS_SUCCESS)
      throw SystemError("cuDNN takes no stream: error " + std::to_string(static_cast<int>(status)));
    require(graph_.execute(handle(), memory, workspace), sizes_);
  }

 private:
  Tensor input(const char* name, Uid uid, std::int64_t tokens, std::int64_t heads, std::int64_t width) {
    const Tensor tensor = graph_.tensor(fe::graph::Tensor_attributes().set_name(name).set_uid(uid));
    lay_out(tensor, tokens, heads, width);
    return tensor;
  }

  static void output(const Tensor& tensor, Uid uid, std::int64_t tokens, std::int64_t heads,
                     std::int64_t width) {
    tensor->set_output(true).set_uid(uid);
    lay_out(tensor, tokens, heads, width);
  }

  std::array<Tensor, 3> inputs() {
    return {input("q", uid_q, sizes_.queries, sizes_.heads, sizes_.d_k),
            input("k", uid_k, sizes_.keys, sizes_.key_heads, sizes_.d_k),
            input("v", uid_v, sizes_.keys, sizes_.key_heads, sizes_.d_v)};
  }

  /// Sets the scale and the mask of a forward or backward pass.
  template <class Attributes>
  Attributes with_mask(Attributes attributes) const {
    attributes.set_attn_scale(1.0F / std::sqrt(static_cast<float>(sizes_.d_k)));
    if (!sizes_.causal) return attributes;
    attributes.set_diagonal_alignment(sizes_.keys == sizes_.queries ? fe::DiagonalAlignment_t::TOP_LEFT
                                                                    : fe::DiagonalAlignment_t::BOTTOM_RIGHT);
    attributes.set_diagonal_band_right_bound(0);
    return attributes;
  }

  void lay_out_stats(const Tensor& stats) const {
    stats->set_data_type(fe::DataType_t::FLOAT)
        .set_dim({1, sizes_.heads, sizes_.queries, 1})
        .set_stride({sizes_.heads * sizes_.queries, sizes_.queries, 1, 1});
  }

  void add_forward() {
    const auto [q, k, v] = inputs();
    const auto attributes = with_mask(fe::graph::SDPA_attributes().set_name("sdpa").set_generate_stats(true));
    const auto [o, stats] = graph_.sdpa(q, k, v, attributes);
    output(o, uid_o, sizes_.queries, sizes_.heads, sizes_.d_v);
    stats->set_output(true).set_uid(uid_stats);
    lay_out_stats(stats);
  }

  void add_backward() {
    const auto [q, k, v] = inputs();
    const Tensor o = input("o", uid_o, sizes_.queries, sizes_.heads, sizes_.d_v),
                 d_o = input("d_o", uid_d_o, sizes_.queries, sizes_.heads, sizes_.d_v),
                 stats = graph_.tensor(fe::graph::Tensor_attributes().set_name("stats").set_uid(uid_stats));
    lay_out_stats(stats);
    auto attributes = with_mask(fe::graph::SDPA_backward_attributes().set_name("sdpa_backward"));
    attributes.set_deterministic_algorithm(is_deterministic());
    const auto [dq, dk, dv] = graph_.sdpa_backward(q, k, v, o, d_o, stats, attributes);
    output(dq, uid_dq, sizes_.queries, sizes_.heads, sizes_.d_k);
    output(dk, uid_dk, sizes_.keys, sizes_.key_heads, sizes_.d_k);
    output(dv, uid_dv, sizes_.keys, sizes_.key_heads, sizes_.d_v);
  }

  AttentionSizes sizes_;
  fe::graph::Graph graph_;
  std::size_t workspace_bytes_ = 0;
};

/// Registers cuDNN before `main`.
const bool entered = [] {
  cudnn_library() = {lacks_cudnn, cudnn_version, is_deterministic};
  attention_plan_maker() = [](const AttentionSizes& sizes) -> std::unique_ptr<AttentionPlan> {
    return std::make_unique<CudnnPlan>(sizes);
  };
  return true;
}();

}  // namespace
}  // namespace baton
