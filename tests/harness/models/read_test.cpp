// SPDX-License-Identifier: Apache-2.0
// Files of models: those that are here, and what is refused.
#include "harness/models/read.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "collectives/schedule/errors.hpp"
#include "tests/scratch_folder.hpp"

namespace baton {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

/// A file of one model.
class File {
 public:
  explicit File(const std::string& text) { std::ofstream(path_) << text; }
  const std::string& path() const { return path_; }

 private:
  const ScratchFolder scratch_;
  const std::string path_ = scratch_.file("model.json");
};

Json valid() {
  Json json{{"name", "small"}, {"layers", {"linear", "softmax"}},
            {"count", 3},      {"width", 8},
            {"heads", 2},      {"kv_heads", 1},
            {"d_k", 4},        {"d_v", 6},
            {"mlp", 16},       {"vocabulary", 32},
            {"chunk", 8},      {"gate", "vector"},
            {"gate_rank", 2},  {"output_gate", false}};
  for (const char* key : {"count", "width", "heads", "kv_heads", "d_k", "d_v", "mlp", "vocabulary", "chunk",
                          "gate", "gate_rank", "output_gate"})
    json["sources"][key] = "a test";
  return json;
}

std::string refusal(const Json& json) {
  const File file(json.dump());
  try {
    read_model(file.path());
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

TEST(ReadModel, TakesAllThatAFileSays) {
  const File file(valid().dump());
  const ModelShape shape = read_model(file.path());
  EXPECT_EQ(shape.name, "small");
  EXPECT_EQ(shape.layers, (std::vector<LayerKind>{Attention::linear, Attention::softmax, Attention::linear}));
  EXPECT_EQ(shape.softmax.kv_heads, 1);
  EXPECT_EQ(shape.linear.d_v, 6);
  EXPECT_EQ(shape.linear.output_gate, OutputGate::none);
}

/// The refusal of the valid model with one value in place of its own.
std::string refusal_with(const char* pointer, const Json& value) {
  Json json = valid();
  json[Json::json_pointer(pointer)] = value;
  return refusal(json);
}

std::string refusal_without(const char* pointer) {
  Json json = valid();
  const Json::json_pointer place(pointer);
  json[place.parent_pointer()].erase(place.back());
  return refusal(json);
}

TEST(ReadModel, NamesTheFileTheKeyAndWhatIsExpected) {
  EXPECT_THAT(refusal_without("/mlp"),
              HasSubstr("model.json: mlp: missing, expected a whole number from 1 to 16777216"));
  EXPECT_THAT(refusal_without("/sources/width"), HasSubstr("sources.width: missing"));
  EXPECT_THAT(refusal_with("/sources/width", ""), HasSubstr("sources.width: expected one line of text"));
  EXPECT_THAT(refusal_with("/heads", 0),
              HasSubstr("heads: expected a whole number from 1 to 1048576, found 0"));
  EXPECT_THAT(refusal_with("/heads", 2.5), HasSubstr("heads: expected a whole number"));
  EXPECT_THAT(refusal_with("/gate", "both"), HasSubstr("gate: expected one of vector, none"));
  EXPECT_THAT(refusal_with("/layers", {"linear", "mamba"}),
              HasSubstr("layers[1]: expected one of linear, softmax, linear_alone, softmax_alone"));
  EXPECT_THAT(refusal_with("/layers", Json::array()), HasSubstr("layers: expected an array of 1 to 1024"));
  EXPECT_THAT(refusal_with("/kv_heads", 3), HasSubstr("kv_heads: expected a divisor of 2 heads, found 3"));
  EXPECT_THAT(refusal_with("/output_gate", 1), HasSubstr("output_gate: expected true or false, found 1"));
  EXPECT_THAT(refusal_with("/widht", 5), HasSubstr("unknown key \"widht\", did you mean \"width\"?"));
  EXPECT_THAT(refusal_with("/sources/Chunk", "x"),
              HasSubstr("sources: unknown key \"Chunk\", did you mean \"chunk\"?"));
}

/// A model whose kinds of layers have sections of their own.
Json hybrid() {
  Json json = valid();
  for (const char* key : {"heads", "kv_heads", "d_k", "d_v", "gate", "gate_rank", "output_gate"}) {
    json.erase(key);
    json["sources"].erase(key);
  }
  json["linear"] = {{"attention", "gdn"}, {"heads", 4}, {"qk_heads", 2},        {"d_k", 4},
                    {"d_v", 6},           {"conv", 4},  {"output_gate", "silu"}};
  json["softmax"] = {
      {"heads", 4},   {"kv_heads", 2},        {"d_k", 8},           {"d_v", 8}, {"head_norms", true},
      {"rotated", 4}, {"rotation_base", 1e6}, {"output_gate", true}};
  for (const char* kind : {"linear", "softmax"})
    for (const auto& [key, value] : json[kind].items()) json["sources"][kind][key] = "a test";
  return json;
}

TEST(ReadModel, TakesSectionsOfEachKindOfLayers) {
  const File file(hybrid().dump());
  const ModelShape shape = read_model(file.path());
  EXPECT_EQ(shape.linear, (LinearLayers{.rule = Rule::delta,
                                        .heads = 4,
                                        .qk_heads = 2,
                                        .d_k = 4,
                                        .d_v = 6,
                                        .gate = GateKind::scalar,
                                        .gate_rank = 0,
                                        .conv = 4}));
  EXPECT_EQ(shape.softmax, (SoftmaxLayers{.heads = 4,
                                          .kv_heads = 2,
                                          .d_k = 8,
                                          .d_v = 8,
                                          .has_output_gate = true,
                                          .has_head_norms = true,
                                          .rotated = 4,
                                          .rotation_base = 1e6}));
  const auto refused = [](const char* pointer, const Json& value) {
    Json json = hybrid();
    json[Json::json_pointer(pointer)] = value;
    return refusal(json);
  };
  EXPECT_THAT(refused("/linear/qk_heads", 3), HasSubstr("linear.qk_heads: expected a divisor of 4 heads"));
  EXPECT_THAT(refused("/linear/attention", "rwkv7"), HasSubstr("linear.attention: expected one of linear"));
  EXPECT_THAT(refused("/softmax/rotated", 10), HasSubstr("softmax.rotated: expected an even number up to 8"));
  EXPECT_THAT(refused("/linear/gate_bound", 5), HasSubstr("sources.linear.gate_bound: missing"));
  EXPECT_THAT(refused("/softmax/window", 10), HasSubstr("softmax: unknown key \"window\""));
  Json json = hybrid();
  json.erase("softmax");
  EXPECT_THAT(refusal(json), HasSubstr("softmax: missing, expected the sizes of softmax layers"));
  json = hybrid();
  json["sources"]["linear"].erase("conv");
  EXPECT_THAT(refusal(json), HasSubstr("sources.linear.conv: missing"));
}

TEST(ReadModel, RefusesLayersBeforeTheyAreMade) {
  EXPECT_THAT(refusal_with("/count", 1 << 20), HasSubstr("count: expected a whole number from 1 to 1024"));
}

TEST(ReadModel, TakesNamesThatATerminalShows) {
  for (const char* name : {"two\nlines", "\x1b[31mred", "\u202eturned", "\u2028", " "})
    EXPECT_THAT(refusal_with("/name", name), HasSubstr("name: expected one line of text"));
  EXPECT_EQ(refusal_with("/name", "H\u00f6rer"), "");
}

TEST(ReadModel, RefusesWhatIsNoFileOfJson) {
  const auto refused = [](const std::string& text) {
    const File file(text);
    try {
      read_model(file.path());
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused("{\"width\":\n 1e400}"), HasSubstr("model.json: width: expected a finite number"));
  EXPECT_THAT(refused("{\n  x"), HasSubstr("model.json: not JSON at line 2, column 3"));
  EXPECT_THAT(refused("[]"), HasSubstr("expected an object, found an array of 0"));
  EXPECT_THROW(read_model("no such file.json"), UsageError);
  EXPECT_THROW(find_model("gla-2b"), UsageError);
  const ScratchFolder folder;
  const std::string pipe = folder.file("pipe.json");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(read_model(pipe), UsageError) << "and waits for no writer";
}

TEST(ReadModel, TakesBoundsOfGatesWhereThereAreSome) {
  Json json = hybrid();
  json["linear"]["gate_bound"] = 5;
  json["sources"]["linear"]["gate_bound"] = "a test";
  const File file(json.dump());
  EXPECT_EQ(read_model(file.path()).linear.gate_bound, 5);
  json["linear"]["attention"] = "deltanet";
  EXPECT_THAT(refusal(json), HasSubstr("linear.gate_bound: only gates of gdn and kda have a bound"));
}

TEST(ReadModel, TakesLightningAttention) {
  Json json = hybrid();
  json["linear"]["attention"] = "lightning";
  EXPECT_THAT(refusal(json), HasSubstr("linear.attention: lightning attention has no gate_rank and no conv"));
  json["linear"].erase("conv");
  const File lightning(json.dump());
  EXPECT_EQ(read_model(lightning.path()).linear.form, LinearForm::lightning);
  EXPECT_EQ(read_model(lightning.path()).linear.gate, GateKind::scalar);
}

TEST(ReadModel, TakesMamba2) {
  Json json = hybrid();
  json["linear"]["attention"] = "mamba2";
  const File mamba(json.dump());
  EXPECT_EQ(read_model(mamba.path()).linear, (LinearLayers{.form = LinearForm::mamba,
                                                           .heads = 4,
                                                           .qk_heads = 2,
                                                           .d_k = 4,
                                                           .d_v = 6,
                                                           .gate = GateKind::scalar,
                                                           .gate_rank = 0,
                                                           .conv = 4}));
  json["linear"]["output_gate"] = "sigmoid";
  EXPECT_THAT(refusal(json), HasSubstr("linear.attention: mamba2 has conv, an output_gate by silu"));
  json["linear"]["output_gate"] = "silu";
  json["linear"].erase("conv");
  EXPECT_THAT(refusal(json), HasSubstr("linear.attention: mamba2 has conv, an output_gate by silu"));
}

TEST(ReadModel, TakesLayersWithoutAnMlpAndOneWithoutAGate) {
  Json json = hybrid();
  json["layers"] = {"linear_alone", "softmax"};
  json["count"] = 3;
  json["mlp_form"] = "squared_relu";
  EXPECT_THAT(refusal(json), HasSubstr("sources.mlp_form: missing"));
  json["sources"]["mlp_form"] = "a test";
  const File file(json.dump());
  const ModelShape shape = read_model(file.path());
  const LayerKind alone(Attention::linear, false);
  EXPECT_EQ(shape.layers, (std::vector<LayerKind>{alone, Attention::softmax, alone}));
  EXPECT_EQ(shape.mlp_form, MlpForm::squared_relu);
  EXPECT_EQ(shape.parameters(Attention::linear) - shape.parameters(alone), shape.width * (2 * shape.mlp + 1));
}

TEST(ReadModel, TakesLatentKeys) {
  Json json = hybrid();
  json["softmax"] = {{"heads", 4}, {"d_k", 6}, {"d_v", 8}, {"q_rank", 9}, {"kv_rank", 10}, {"shared_k", 2}};
  for (const auto& [key, value] : json["softmax"].items()) json["sources"]["softmax"][key] = "a test";
  const File latent(json.dump());
  EXPECT_EQ(read_model(latent.path()).softmax,
            (SoftmaxLayers{.d_k = 6, .d_v = 8, .q_rank = 9, .kv_rank = 10, .shared_k = 2}));
  json["softmax"]["shared_k"] = 6;
  EXPECT_THAT(refusal(json), HasSubstr("softmax.shared_k: expected fewer channels than d_k"));
  json["softmax"]["shared_k"] = 2;
  json["softmax"]["rotated"] = 4;
  EXPECT_THAT(refusal(json), HasSubstr("softmax.rotated: expected an even number up to 2 channels, found 4"));
  json["softmax"]["kv_heads"] = 2;
  EXPECT_THAT(refusal(json), HasSubstr("softmax.kv_rank: latent keys have as many heads as queries"));
}

TEST(ReadModel, KnowsTheModelsOfThisProject) {
  EXPECT_THAT(
      model_names(),
      testing::ElementsAre("tiny", "gla-1b", "gla-1b-h16", "glm-5.3-flash", "kimi-linear-48b-a3b",
                           "linear-llama3-1b", "minimax-text-01", "nemotron-3-nano-30b-a3b",
                           "qwen3-next-80b-a3b", "qwen3.5-27b", "qwen3.5-9b", "zeco-1b", "zeco-1b-h128"));
  // flash-linear-attention's GLA-1B: 51.4 million weights a layer.
  EXPECT_NEAR(static_cast<double>(find_model("gla-1b").parameters(Attention::linear)), 51.4e6, 0.1e6);
  const ModelShape qwen = find_model("qwen3.5-9b");
  EXPECT_EQ(qwen.softmax_layers(), 8);
  EXPECT_EQ(qwen.linear.rule, Rule::delta);
  EXPECT_EQ(qwen.share(Attention::linear, 1).query_heads(), 16);
  EXPECT_EQ(qwen.softmax.rotated, 64);
  EXPECT_NEAR(static_cast<double>(qwen.parameters(true)), 9.0e9, 0.5e9);
  // MiniMax-Text-01 has 45.9 billion active weights, without embedding and head.
  EXPECT_NEAR(static_cast<double>(find_model("minimax-text-01").parameters(false)), 45.9e9, 0.1e9);
  const ModelShape kimi = find_model("kimi-linear-48b-a3b");
  EXPECT_EQ(kimi.softmax_layers(), 7);
  EXPECT_EQ(kimi.layers[26], Attention::softmax);
  EXPECT_EQ(kimi.share(Attention::softmax, 1).d_k, 192);
  // 3 billion active weights, with one embedding and the head.
  EXPECT_NEAR(static_cast<double>(kimi.parameters(true)), 3.5e9, 0.3e9);
  const ModelShape glm = find_model("glm-5.3-flash");
  EXPECT_EQ(glm.softmax_layers(), 11);
  EXPECT_EQ(glm.linear.gate_bound, 5);
  // 18 billion active weights.
  EXPECT_NEAR(static_cast<double>(glm.parameters(true)), 18e9, 1e9);
  const ModelShape nemotron = find_model("nemotron-3-nano-30b-a3b");
  EXPECT_EQ(nemotron.softmax_layers(), 6);
  EXPECT_EQ(std::count(nemotron.layers.begin(), nemotron.layers.end(), LayerKind(Attention::linear, false)),
            6);
  // 3.6 billion active weights, with embedding and head (arXiv 2512.20848).
  EXPECT_NEAR(static_cast<double>(nemotron.parameters(true)), 3.6e9, 0.1e9);
  for (const std::string& name : model_names()) EXPECT_EQ(find_model(name).name, name);
  EXPECT_EQ(find_model("models/gla-1b.json").name, "gla-1b");  // the path of earlier versions
}

}  // namespace
}  // namespace baton
