// Status and Result: errors are values, and the code says how much is broken.
// Thread: any (values).   Owns: its text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace halay {

enum class Code : uint8_t {
#define HALAY_STATUS(name, number, blast) name = number,
#include "base/status.def"
#undef HALAY_STATUS
};

std::string_view name_of(Code code);

// An ok Status holds no allocation, so that it costs nothing on the hot path.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string text, int32_t culprit = -1);
  Status(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(const Status& other);
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  static Status invalid_argument(std::string text) { return {Code::invalid_argument, std::move(text)}; }
  static Status not_initialized(std::string text) { return {Code::not_initialized, std::move(text)}; }
  static Status timeout(std::string text) { return {Code::timeout, std::move(text)}; }
  static Status mismatch(std::string text) { return {Code::mismatch, std::move(text)}; }
  static Status stalled(std::string text) { return {Code::stalled, std::move(text)}; }
  static Status unsupported(std::string text) { return {Code::unsupported, std::move(text)}; }
  static Status no_memory(std::string text) { return {Code::no_memory, std::move(text)}; }
  // `rank` is the peer whose end this is; Python shows it as PeerLost.rank.
  static Status peer_lost(int32_t rank, std::string text) { return {Code::peer_lost, std::move(text), rank}; }
  static Status aborted(std::string text) { return {Code::aborted, std::move(text)}; }
  static Status internal(std::string text) { return {Code::internal, std::move(text)}; }
  static Status duplicate_name(std::string text) { return {Code::duplicate_name, std::move(text)}; }
  static Status not_a_member(std::string text) { return {Code::not_a_member, std::move(text)}; }

  bool ok() const { return failure_ == nullptr; }
  Code code() const { return failure_ ? failure_->code : Code::ok; }
  const std::string& text() const;
  // The rank at fault where one is known, else -1.
  int32_t culprit() const { return failure_ ? failure_->culprit : -1; }

 private:
  struct Failure {
    Code code;
    int32_t culprit;
    std::string text;
  };
  std::unique_ptr<Failure> failure_;
};

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    HALAY_ASSERT(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }
  T& value() & {
    HALAY_ASSERT(ok());
    return *value_;
  }
  const T& value() const& {
    HALAY_ASSERT(ok());
    return *value_;
  }
  T value() && {
    HALAY_ASSERT(ok());
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace halay

#define HALAY_CONCAT_INNER(a, b) a##b
#define HALAY_CONCAT(a, b) HALAY_CONCAT_INNER(a, b)

#define HALAY_RETURN_IF_ERROR(expression)        \
  do {                                           \
    ::halay::Status halay_status = (expression); \
    if (!halay_status.ok()) return halay_status; \
  } while (false)

// HALAY_TRY(auto plan, select(batch));  declares `plan`, or returns the Status.
#define HALAY_TRY(declaration, expression) \
  HALAY_TRY_INNER(declaration, expression, HALAY_CONCAT(halay_result_, __LINE__))
#define HALAY_TRY_INNER(declaration, expression, result) \
  auto result = (expression);                            \
  if (!result.ok()) return std::move(result).status();   \
  declaration = std::move(result).value()
