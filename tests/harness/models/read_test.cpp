// SPDX-License-Identifier: Apache-2.0
// Files of models: those that are here, and what is refused.
#include "harness/models/read.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "collectives/schedule/errors.hpp"
#include "tests/scratch_folder.hpp"

namespace baton {
namespace {

using Json = nlohmann::json;

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
  EXPECT_EQ(shape.layers, (std::vector{Attention::linear, Attention::softmax, Attention::linear}));
  EXPECT_EQ(shape.kv_heads, 1);
  EXPECT_EQ(shape.d_v, 6);
  EXPECT_FALSE(shape.has_output_gate);
}

TEST(ReadModel, RefusesWhatHasNoSourceOrIsMissingOrWrong) {
  Json json = valid();
  json["sources"].erase("width");
  EXPECT_THAT(refusal(json), testing::HasSubstr("width has no source"));
  json = valid();
  json.erase("mlp");
  EXPECT_THAT(refusal(json), testing::HasSubstr("there is no mlp"));
  json = valid();
  json["heads"] = 0;
  EXPECT_THAT(refusal(json), testing::HasSubstr("heads is no number"));
  json = valid();
  json["layers"] = {"linear", "mamba"};
  EXPECT_THAT(refusal(json), testing::HasSubstr("layers is no list"));
  json = valid();
  json["heads"] = 3;
  json["kv_heads"] = 2;
  EXPECT_THAT(refusal(json), testing::HasSubstr("do not divide"));
  json = valid();
  json["output_gate"] = 1;
  EXPECT_THAT(refusal(json), testing::HasSubstr("output_gate is true or false"));
  EXPECT_THROW(read_model("no such file.json"), UsageError);
  EXPECT_THROW(find_model("gla-2b"), UsageError);
}

TEST(ReadModel, KnowsTheModelsOfThisProject) {
  EXPECT_THAT(model_names(), testing::ElementsAre("tiny", "gla-1b", "gla-1b-h16", "linear-llama3-1b"));
  // flash-linear-attention's GLA-1B: 51.4 million weights a layer.
  EXPECT_NEAR(static_cast<double>(find_model("gla-1b").parameters(Attention::linear)), 51.4e6, 0.1e6);
  for (const std::string& name : model_names()) EXPECT_EQ(find_model(name).name, name);
  EXPECT_EQ(find_model("models/gla-1b.json").name, "gla-1b");  // the path of earlier versions
}

}  // namespace
}  // namespace baton
