// SPDX-License-Identifier: Apache-2.0
#include "harness/run/channel.hpp"

#include <fstream>
#include <optional>

#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

using Json = Result::Json;

Json to_json(const RanksMet&) { return {{"met", true}}; }
Json to_json(const CaseBegins& begins) { return {{"begins", begins.index}}; }
Json to_json(const CaseEnds& ends) { return {{"ends", ends.index}, {"result", ends.result.json()}}; }
Json to_json(const Notice& notice) { return {{"about", notice.about}, {"text", notice.text}}; }

/// The message of a line; nothing for a report of a failure, or for a line that a crash cut off.
std::optional<Message> message_of(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || json.contains("what")) return std::nullopt;
  if (json.contains("met")) return RanksMet{};
  if (json.contains("begins")) return CaseBegins{json.at("begins")};
  if (json.contains("ends")) return CaseEnds{json.at("ends"), Result(json.at("result"))};
  return Notice{json.at("about"), json.at("text")};
}

}  // namespace

std::string Plan::line() const { return Json{{"is_last", is_last}, {"cases", cases}}.dump(); }

Plan Plan::of_line(const std::string& line) {
  const Json json = Json::parse(line);
  return {json.at("is_last"), json.at("cases")};
}

Channel::Channel(const std::string& folder)
    : plan_path_(folder + "/plan"), messages_path_(folder + "/messages") {}

void Channel::write_plan(const Plan& plan) const { write_text(plan_path_, plan.line()); }

Plan Channel::read_plan() const {
  std::ifstream file(plan_path_);
  std::string line;
  if (!std::getline(file, line)) throw SystemError("cannot read '" + plan_path_ + "'");
  return Plan::of_line(line);
}

void Channel::send(const Message& message) {
  if (!file_) file_ = std::make_unique<Journal>(messages_path_);
  const Json json = std::visit([](const auto& one) { return to_json(one); }, message);
  file_->append(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

int Channel::receive(const TakeMessage& take) {
  std::ifstream file(messages_path_);
  if (!file.seekg(static_cast<std::streamoff>(read_bytes_)))
    throw SystemError("cannot read '" + messages_path_ + "'");
  int count = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    read_bytes_ += line.size() + 1;
    const std::optional<Message> message = message_of(line);
    if (!message) continue;
    take(*message);
    ++count;
  }
  return count;
}

}  // namespace baton
