#include "trace/chrome_text.h"

#include <charconv>
#include <cstdio>

#include "base/text.h"

namespace halay::trace {
namespace {

constexpr std::string_view kActivities[] = {
#define HALAY_ACTIVITY(name) #name,
#include "trace/activity.def"
#undef HALAY_ACTIVITY
};

// Bytes of the UTF-8 character at the start of `text`; 0 if there is none. Overlong forms, surrogates and what lies
// past U+10FFFF are none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : (first >= 0xe0 ? 3 : 2);
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  if (first == 0xe0 && second < 0xa0) return 0;
  if (first == 0xed && second > 0x9f) return 0;
  if (first == 0xf0 && second < 0x90) return 0;
  if (first == 0xf4 && second > 0x8f) return 0;
  return length;
}

// Appends the parts without a text in between: the writer must keep up with a million events a second.
template <typename Part>
void add_one(std::string& out, const Part& part) {
  if constexpr (std::integral<Part> && !std::same_as<Part, char>) {
    char digits[24];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, part).ptr);
  } else {
    append_text(out, part);
  }
}
template <typename... Parts>
void add(std::string& out, const Parts&... parts) {
  (add_one(out, parts), ...);
}

OpKind op_kind_of(const Event& event) { return static_cast<OpKind>(event.detail); }
std::string_view activity_of(const Event& event) { return name_of(static_cast<Activity>(event.detail)); }

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  constexpr size_t kLongest = 1000;
  out += '"';
  for (size_t i = 0; i < text.size();) {
    if (i >= kLongest) {
      out += "\xe2\x80\xa6";  // …
      break;
    }
    const char c = text[i];
    const size_t length = utf8_length(text.substr(i));
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += escape;
    } else if (length == 0) {
      out += "\\ufffd";
    } else {
      out += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  out += '"';
}

std::string upper_name(OpKind kind) {
  std::string out(halay::name_of(kind));
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

std::string_view name_of(Activity activity) { return kActivities[static_cast<size_t>(activity)]; }

ChromeText::ChromeText(const NameTable& names, const TimelineOptions& options) : names_(names), options_(options) {
  for (int64_t number = 0; const auto kind = op_kind_from_number(number); ++number)
    op_names_.push_back(upper_name(*kind));
}

void ChromeText::append_header(std::string& out, int64_t epoch_us) const {
  add(out, R"({"name":"process_name","ph":"M","pid":0,"args":{"name":")");
  add(out, "halay rank ", options_.rank, " of ", options_.size);
  add(out, R"(","rank":)", options_.rank, R"(,"size":)", options_.size);
  add(out, R"(,"start_time_since_epoch_in_micros":)", epoch_us, "}},\n");
  add(out, R"({"name":"process_sort_index","ph":"M","pid":0,"args":{"sort_index":0}},)");
  out += '\n';
}

uint32_t ChromeText::track(std::string& out, NameId name) {
  const auto index = static_cast<size_t>(name);
  if (index >= tracks_.size()) tracks_.resize(index + 1);
  Track& track = tracks_[index];
  if (track.pid != 0) return track.pid;
  track.pid = ++pids_;
  add(out, R"({"name":"process_name","ph":"M","pid":)", track.pid, R"(,"args":{"name":)");
  append_json_string(out, names_.text(name));
  add(out, "}},\n", R"({"name":"process_sort_index","ph":"M","pid":)", track.pid, R"(,"args":{"sort_index":)",
      track.pid, "}},\n");
  return track.pid;
}

void ChromeText::append_time(std::string& out, Time at) {
  last_ = at;
  const int64_t ns = at.ns - options_.start_at.ns;
  const uint64_t magnitude = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  const uint64_t rest = magnitude % 1000;
  add(out, ns < 0 ? R"(,"ts":-)" : R"(,"ts":)", magnitude / 1000, rest < 10 ? ".00" : (rest < 100 ? ".0" : "."), rest);
}

void ChromeText::begin(std::string& out, const Event& event, std::string_view prefix, std::string_view what) {
  const uint32_t pid = track(out, event.name);
  add(out, R"({"ph":"B","name":")", prefix, what, '"');
  append_time(out, event.at);
  add(out, R"(,"pid":)", pid, "},\n");
  ++tracks_[static_cast<size_t>(event.name)].depth;
}

void ChromeText::append(std::string& out, const Event& event, std::span<const int64_t> dims) {
  switch (event.kind) {
    case EventKind::negotiate_begin:
      return begin(out, event, "NEGOTIATE_", op_names_[event.detail]);
    case EventKind::operation_begin:
      return begin(out, event, "", op_names_[event.detail]);
    case EventKind::activity_begin:
      return begin(out, event, "", activity_of(event));
    case EventKind::rank_ready: {
      const uint32_t pid = track(out, event.name);
      add(out, R"({"ph":"X","name":")", event.value, R"(","dur":0)");
      append_time(out, event.at);
      return add(out, R"(,"pid":)", pid, "},\n");
    }
    case EventKind::list_decided:
      if (!options_.mark_cycles) return;
      add(out, R"({"ph":"i","name":"CYCLE_START","s":"g","pid":0)");
      append_time(out, event.at);
      return add(out, R"(,"args":{"list":)", event.value, "}},\n");
    case EventKind::negotiate_end:
    case EventKind::activity_end:
    case EventKind::operation_end: {
      const uint32_t pid = track(out, event.name);
      Track& ended = tracks_[static_cast<size_t>(event.name)];
      if (ended.depth == 0) return;  // its begin was before this trace, or was dropped
      --ended.depth;
      add(out, R"({"ph":"E")");
      append_time(out, event.at);
      add(out, R"(,"pid":)", pid);
      if (event.kind == EventKind::operation_end) {
        add(out, R"(,"args":{"dtype":")", static_cast<DType>(event.detail), R"(","shape":")");
        add(out, std::vector<int64_t>(dims.begin(), dims.end()), R"("})");
      }
      return add(out, "},\n");
    }
  }
}

void ChromeText::append_note(std::string& out, std::string_view note, std::string_view count_name, uint64_t count) {
  add(out, R"({"ph":"i","name":")", note, R"(","s":"g","pid":0)");
  append_time(out, last_ < options_.start_at ? options_.start_at : last_);
  add(out, R"(,"args":{")", count_name, R"(":)", count, "}},\n");
}

void append_line(std::string& out, const NameTable& names, const Event& event) {
  char time[40];
  std::snprintf(time, sizeof time, "%lld.%06lld ", static_cast<long long>(event.at.ns / 1'000'000'000),
                static_cast<long long>(event.at.ns % 1'000'000'000 / 1000));
  out += time;
  if (event.kind != EventKind::list_decided) {
    append_json_string(out, names.text(event.name));
    out += ' ';
  }
  switch (event.kind) {
    case EventKind::negotiate_begin:
      append_text(out, text("negotiate ", op_kind_of(event)));
      break;
    case EventKind::rank_ready:
      append_text(out, text("rank ", event.value, " ready"));
      break;
    case EventKind::negotiate_end:
      append_text(out, "negotiated");
      break;
    case EventKind::operation_begin:
      append_text(out, text(op_kind_of(event), " begins"));
      break;
    case EventKind::activity_begin:
      append_text(out, text(activity_of(event), " begins"));
      break;
    case EventKind::activity_end:
      append_text(out, "activity ends");
      break;
    case EventKind::operation_end:
      append_text(out, text("done, ", event.value, " elements of ", static_cast<DType>(event.detail)));
      break;
    case EventKind::list_decided:
      append_text(out, text("list ", event.value, " decided"));
      break;
  }
  out += '\n';
}

}  // namespace halay::trace
