#include "program/run_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>

#include "base/config.h"
#include "base/text.h"
#include "launch/slots.h"
#include "program/config_file.h"

namespace halay::program {
namespace {

// What a flag gave, before it is checked.
struct Given {
  std::string flag, knob, value;
};

struct Raw {
  std::string process_count, fusion_megabytes, config_file;
  std::vector<std::string> interfaces;
  std::string interface_list;
  bool tcp = false;
  std::vector<Given> given;
};

// Single-dash long options, which only argparse has: -np 4, -np=4, -cb ... A worker's own arguments are left alone.
void spell_out(std::vector<std::string>& arguments, size_t command_from) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSpellings = {
      {{"-np", "--num-proc"},
       {"-cb", "--check-build"},
       {"-hostfile", "--hostfile"},
       {"-prefix-timestamp", "--prefix-output-with-timestamp"}}};
  for (size_t i = 0; i < std::min(command_from, arguments.size()); ++i) {
    std::string& argument = arguments[i];
    for (const auto& [short_form, long_form] : kSpellings) {
      const bool valued =
          argument.starts_with(short_form) && argument.size() > short_form.size() && argument[short_form.size()] == '=';
      if (argument == short_form || valued) {
        argument = text(long_form, std::string_view(argument).substr(short_form.size()));
        break;
      }
    }
  }
}

// "--a,-b" -> "--a": the name to show.
std::string shown(std::string_view names) {
  for (size_t from = 0; from <= names.size();) {
    const size_t comma = std::min(names.find(',', from), names.size());
    const std::string_view name = names.substr(from, comma - from);
    if (name.starts_with("--")) return std::string(name);
    from = comma + 1;
  }
  return std::string(names);
}

void add_knob_flags(CLI::App& app, Raw& raw, RunOptions& options) {
#define HALAY_RUN_VALUE(flags, knob, argument, help)                                                          \
  app.add_option_function<std::string>(                                                                       \
         flags, [&raw](const std::string& value) { raw.given.push_back({shown(flags), knob, value}); }, help) \
      ->type_name(argument);
#define HALAY_RUN_SWITCH(flags, knob, value, help) \
  app.add_flag_callback(flags, [&raw] { raw.given.push_back({shown(flags), knob, value}); }, help);
#define HALAY_RUN_LATER(flags, argument_count, what, help)                                                           \
  if (argument_count == 0) {                                                                                         \
    app.add_flag_callback(flags, [&options] { options.notes.push_back(text(shown(flags), ": ", what)); }, help);     \
  } else {                                                                                                           \
    app.add_option_function<std::vector<std::string>>(                                                               \
           flags,                                                                                                    \
           [&options](const std::vector<std::string>&) { options.notes.push_back(text(shown(flags), ": ", what)); }, \
           help)                                                                                                     \
        ->expected(argument_count)                                                                                   \
        ->type_name("");                                                                                             \
  }
#include "program/run_flags.def"
#undef HALAY_RUN_VALUE
#undef HALAY_RUN_SWITCH
#undef HALAY_RUN_LATER
}

void add_own_flags(CLI::App& app, Raw& raw, RunOptions& options) {
  app.add_option("--num-proc", raw.process_count, "Processes to start (also -np).")->type_name("N");
  app.add_flag("--check-build", options.check_build, "Show what this build has (also -cb).");
  app.add_flag("-v,--version", options.version, "Show the version.");
  app.add_flag("--verbose", options.verbose, "Say more.");
  app.add_option("--network-interfaces", raw.interface_list, "Network interfaces to use, separated by commas.")
      ->type_name("A,B");
  app.add_option("--network-interface", raw.interfaces, "One of them; may be repeated.")
      ->expected(1)
      ->take_all()
      ->type_name("A");
  app.add_option("--output-filename", options.output_folder,
                 "Folder for a copy of each rank's output: rank.N/stdout, rank.N/stderr.")
      ->type_name("FOLDER");
  app.add_option("--config-file", raw.config_file, "File with options (YAML); the command line wins.")
      ->type_name("FILE");
  app.add_option("--fusion-threshold-mb", raw.fusion_megabytes,
                 "Tensors up to this size together share a batch; 0: no fusion.")
      ->type_name("MB");
  app.add_flag("--prefix-output-with-timestamp", options.prefix_timestamp,
               "Time before each line of output (also -prefix-timestamp).");
  app.add_flag("--tcp", raw.tcp, "TCP instead of InfiniBand in vendor engines (NCCL_IB_DISABLE=1).");
  app.add_option("-H,--hosts", options.hosts, "Hosts and their slots; this machine alone for now.")
      ->type_name("A:2,B:4");
  app.add_option("--hostfile", options.hostfile, "The same from a file: lines 'host slots=N' (also -hostfile).")
      ->type_name("FILE");
  app.add_option("command", options.command, "The program that each process runs, with its arguments.");
}

// Pairs that contradict each other.
void add_contradictions(CLI::App& app) {
  constexpr std::array<std::array<const char*, 2>, 14> kPairs = {
      {{"--hosts", "--hostfile"},
       {"--hosts", "--host-discovery-script"},
       {"--hostfile", "--host-discovery-script"},
       {"--gloo", "--mpi"},
       {"--gloo", "--jsrun"},
       {"--mpi", "--jsrun"},
       {"--autotune", "--no-autotune"},
       {"--stall-check", "--no-stall-check"},
       {"--timeline-mark-cycles", "--no-timeline-mark-cycles"},
       {"--hierarchical-allreduce", "--no-hierarchical-allreduce"},
       {"--hierarchical-allgather", "--no-hierarchical-allgather"},
       {"--torus-allreduce", "--no-torus-allreduce"},
       {"--mpi-threads-disable", "--no-mpi-threads-disable"},
       {"--log-with-timestamp", "--log-without-timestamp"}}};
  for (const auto& [one, other] : kPairs) app.get_option(one)->excludes(other);
}

std::vector<std::string> all_flags(const CLI::App& app) {
  std::vector<std::string> names{"-np", "-cb", "-hostfile", "-prefix-timestamp"};
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

Status unknown_flag(const CLI::App& app, const std::string& given) {
  const std::string word = given.substr(0, given.find('='));
  const std::string nearest = nearest_name(word, all_flags(app));
  return Status::invalid_argument(
      text("unknown option ", word,
           nearest.empty() ? std::string("; see halay run --help") : text("; did you mean ", nearest, "?")));
}

// Where the worker's own command line begins: after the first word that is neither a flag nor a flag's argument.
size_t command_start(const CLI::App& app, std::vector<std::string> arguments) {
  spell_out(arguments, arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") return i + 1;
    if (argument.size() < 2 || argument[0] != '-') return i;
    if (argument.find('=') != std::string::npos) continue;
    const CLI::Option* option = app.get_option_no_throw(argument);
    if (option != nullptr && option->get_items_expected_max() > 0)
      i += static_cast<size_t>(option->get_items_expected_max());
  }
  return arguments.size();
}

Status check_knob(const Given& given) {
  const auto rows = knob_table();
  const auto row = std::ranges::find_if(rows, [&](const KnobRow& candidate) { return candidate.name == given.knob; });
  HALAY_ASSERT(row != rows.end());
  const std::string setting = text("HALAY_", given.knob, "=", given.value);
  if (row->type != "later") {
    if (const auto config = read_config_from({}, {&setting, 1}, nullptr); !config.ok()) {
      return Status::invalid_argument(text(given.flag, ": ", config.status().text()));
    }
  } else if (given.value.starts_with('-')) {
    return Status::invalid_argument(text(given.flag, " ", given.value, ": must not be negative"));
  }
  return {};
}

std::string why_without_effect(const Given& given) {
  for (const KnobRow& row : knob_table()) {
    if (row.name == given.knob && row.type == "later") return text(given.flag, ": no effect yet. ", row.text);
  }
  return {};
}

Status settle(Raw& raw, RunOptions& options) {
  if (!raw.process_count.empty()) {
    const std::string& digits = raw.process_count;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), options.process_count);
    if (error != std::errc() || end != digits.data() + digits.size() || options.process_count < 1) {
      return Status::invalid_argument(text("-np ", digits, ": at least one process is needed (-np 1, -np 2, ...)"));
    }
    options.process_count_given = true;
  }
  if (!raw.fusion_megabytes.empty()) {
    int64_t megabytes = 0;
    const std::string& digits = raw.fusion_megabytes;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), megabytes);
    const bool whole = error == std::errc() && end == digits.data() + digits.size();
    if (!whole || megabytes < 0 || megabytes > (int64_t{1} << 40)) {
      return Status::invalid_argument(
          text("--fusion-threshold-mb ", digits, ": must be a whole number of megabytes, 0 or more"));
    }
    raw.given.push_back({"--fusion-threshold-mb", "FUSION_THRESHOLD", text(megabytes * (1 << 20))});
  }
  for (const std::string& name : raw.interfaces) raw.interface_list += (raw.interface_list.empty() ? "" : ",") + name;
  if (!raw.interface_list.empty()) {
    raw.given.push_back({"--network-interfaces", "NETWORK_INTERFACES", raw.interface_list});
    options.settings.push_back("NCCL_SOCKET_IFNAME=" + raw.interface_list);
  }
  if (raw.tcp) options.settings.emplace_back("NCCL_IB_DISABLE=1");
  for (const Given& given : raw.given) {
    HALAY_RETURN_IF_ERROR(check_knob(given));
    options.settings.push_back(text("HALAY_", given.knob, "=", given.value));
    if (std::string why = why_without_effect(given); !why.empty()) options.notes.push_back(std::move(why));
  }
  return {};
}

Result<std::string> read_file(const std::string& path, std::string_view what) {
  std::ifstream file(path);
  std::stringstream contents;
  if (!(contents << file.rdbuf())) return Status::invalid_argument(text(what, ": cannot read '", path, "'"));
  return contents.str();
}

Result<RunOptions> parse(std::vector<std::string> arguments, std::string* config_file) {
  RunOptions options;
  Raw raw;
  CLI::App app("Starts a program in several processes and looks after them.", "halay run");
  app.positionals_at_end();
  add_knob_flags(app, raw, options);
  add_own_flags(app, raw, options);
  add_contradictions(app);
  const size_t command_from = command_start(app, arguments);
  spell_out(arguments, command_from);
  std::vector<std::string> command(arguments.begin() + static_cast<ptrdiff_t>(command_from), arguments.end());
  arguments.resize(command_from);
  // CLI11 would read -hostfiel as -h and more; nothing can be glued to these two.
  const auto glued = std::ranges::find_if(arguments, [](const std::string& argument) {
    return argument.size() > 2 && (argument.starts_with("-h") || argument.starts_with("-v"));
  });
  if (glued != arguments.end()) return unknown_flag(app, *glued);
  if (!arguments.empty() && arguments.back() == "--") arguments.pop_back();
  std::ranges::reverse(arguments);  // as CLI11 wants it
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    options.help = app.help();
    return options;
  } catch (const CLI::ExtrasError&) {
    return unknown_flag(app, app.remaining().front());
  } catch (const CLI::Error& error) {
    const std::vector<std::string> rest = app.remaining();
    if (!rest.empty() && rest.front().starts_with('-')) return unknown_flag(app, rest.front());
    return Status::invalid_argument(error.what());
  }
  options.command = std::move(command);
  *config_file = raw.config_file;
  HALAY_RETURN_IF_ERROR(settle(raw, options));
  return options;
}

}  // namespace

Result<RunOptions> parse_run_options(std::vector<std::string> arguments) {
  std::string config_path, ignored;
  HALAY_TRY(RunOptions options, parse(std::move(arguments), &config_path));
  if (config_path.empty()) return options;
  HALAY_TRY(const std::string contents, read_file(config_path, "--config-file"));
  HALAY_TRY(const std::vector<ConfigEntry> entries, parse_config_file(contents));
  HALAY_TRY(std::vector<std::string> flags, flags_from_config(entries));
  HALAY_TRY(const RunOptions from_file, parse(std::move(flags), &ignored));
  options.settings.insert(options.settings.begin(), from_file.settings.begin(), from_file.settings.end());
  options.notes.insert(options.notes.begin(), from_file.notes.begin(), from_file.notes.end());
  return options;
}

Result<launch::JobSpec> make_job(RunOptions& options, std::vector<std::string> environment) {
  if (!options.process_count_given) return Status::invalid_argument("-np N is needed: how many processes to start");
  if (options.command.empty()) {
    return Status::invalid_argument(
        text("no program given: halay run -np ", options.process_count, " program [arguments]"));
  }
  HALAY_RETURN_IF_ERROR(read_config_from(environment, {}, nullptr).status());
  std::vector<launch::Host> hosts{{"localhost", options.process_count}};
  if (!options.hosts.empty()) {
    HALAY_TRY(hosts, launch::parse_hosts(options.hosts));
  } else if (!options.hostfile.empty()) {
    HALAY_TRY(const std::string contents, read_file(options.hostfile, "--hostfile"));
    HALAY_TRY(hosts, launch::parse_hostfile(contents));
  }
  std::vector<std::string> far;
  int32_t near_slots = 0;
  for (const launch::Host& host : hosts) {
    if (launch::is_this_machine(host.name)) {
      near_slots += host.slot_count;
    } else {
      far.push_back(host.name);
    }
  }
  if (!far.empty()) {
    if (near_slots < options.process_count) {
      return Status::unsupported(text("hosts ", far,
                                      ": starting processes on other machines comes later; this machine has ",
                                      near_slots, " of the ", options.process_count, " slots needed"));
    }
    options.notes.push_back(
        text("hosts ", far, ": other machines come later; all ", options.process_count, " processes start here"));
  }
  // Several names of this machine are one machine.
  const std::array<launch::Host, 1> here{{{hosts.front().name, near_slots}}};
  launch::JobSpec job;
  HALAY_TRY(job.slots, launch::assign_slots(here, options.process_count));
  for (launch::Slot& slot : job.slots) {
    if (slot.host == "localhost" || !far.empty()) slot.host = launch::own_hostname();
  }
  job.command = options.command;
  job.environment = std::move(environment);
  job.settings = options.settings;
  job.output_folder = options.output_folder;
  job.prefix_timestamp = options.prefix_timestamp;
  job.verbose = options.verbose;
  return job;
}

}  // namespace halay::program
