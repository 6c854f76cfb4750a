#include "base/status.h"

namespace halay {

std::string_view name_of(Code code) {
  switch (code) {
#define HALAY_STATUS(name, number, blast) \
  case Code::name:                        \
    return #name;
#include "base/status.def"
#undef HALAY_STATUS
  }
  return "unknown";
}

Status::Status(Code code, std::string text, int32_t culprit) {
  if (code == Code::ok) return;
  failure_ = std::make_unique<Failure>(Failure{code, culprit, std::move(text)});
}

Status::Status(const Status& other) : failure_(other.failure_ ? std::make_unique<Failure>(*other.failure_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) failure_ = other.failure_ ? std::make_unique<Failure>(*other.failure_) : nullptr;
  return *this;
}

const std::string& Status::text() const {
  static const std::string& kNoText = *new std::string;  // never destroyed
  return failure_ ? failure_->text : kNoText;
}

}  // namespace halay
