// How long one small frame takes from rank to rank when both sides drive (nobody sleeps), and how fast one large
// transfer goes. Two threads, each a rank of its own; shm maps the memory twice, as two processes do. Needs two idle
// cores. Prints the minimum and the median of several rounds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "transport/fabric.h"

namespace {

using namespace halay;
using namespace halay::transport;

constexpr int kRounds = 15, kExchanges = 20'000;
constexpr size_t kLargeBytes = size_t{32} << 20;

class CountingSink final : public FrameSink {
 public:
  void on_frame(int32_t, FrameKind, uint64_t, std::span<const std::byte>) override { ++count; }
  int count = 0;
};

struct Figures {
  std::vector<double> frame_ns, gigabytes_per_second;
};

void run_rank(Fabric& fabric, size_t payload_bytes, Figures& figures) {
  const bool first = fabric.rank() == 0;
  Channel& channel = *fabric.channel(first ? 1 : 0);
  const std::vector<std::byte> payload(payload_bytes);
  CountingSink sink;
  std::vector<std::byte> large(kLargeBytes, std::byte{1});
  for (int round = 0; round < kRounds; ++round) {
    const Time begin = system_clock().now();
    for (int i = 0; i < kExchanges; ++i) {
      if (first) channel.send_frame(FrameKind::control, 1, payload);
      while (sink.count <= round * kExchanges + i) fabric.progress(sink, Time{1});
      if (!first) channel.send_frame(FrameKind::control, 1, payload);
    }
    const Time middle = system_clock().now();
    Transfer transfer;
    if (first) channel.post_send(2, large, &transfer);
    if (!first) channel.post_recv(2, large, &transfer);
    while (!transfer.done) fabric.progress(sink, Time{1});
    const Time end = system_clock().now();
    figures.frame_ns.push_back(seconds_between(begin, middle) * 1e9 / kExchanges / 2);
    figures.gigabytes_per_second.push_back(static_cast<double>(kLargeBytes) * 1e-9 / seconds_between(middle, end));
  }
}

int measure(const std::string& transport, size_t payload_bytes) {
  FabricOptions options;
  options.transport = transport;
  if (transport == "inproc") options.hub = make_inproc_hub();
  std::vector<std::unique_ptr<Door>> doors;
  std::vector<std::vector<std::byte>> addresses;
  for (int rank = 0; rank < 2; ++rank) {
    doors.push_back(open_door(options).value());
    addresses.emplace_back(doors.back()->address().begin(), doors.back()->address().end());
  }
  Figures figures[2];
  const auto rank = [&](int32_t me) {
    auto fabric = connect(std::move(doors[static_cast<size_t>(me)]), me, addresses, options);
    if (!fabric.ok()) std::exit((std::fprintf(stderr, "%s\n", fabric.status().text().c_str()), 1));
    run_rank(*fabric.value(), payload_bytes, figures[me]);
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
  auto& frames = figures[0].frame_ns;
  auto& speeds = figures[1].gigabytes_per_second;
  std::ranges::sort(frames);
  std::ranges::sort(speeds);
  std::printf("%-7s frame of %4zu bytes: min %8.0f ns, median %8.0f ns; 32 MiB: best %5.1f GB/s, median %5.1f GB/s\n",
              transport.c_str(), payload_bytes, frames.front(), frames[frames.size() / 2], speeds.back(),
              speeds[speeds.size() / 2]);
  return 0;
}

}  // namespace

// Transports to measure; all of them if none is named.
int main(int argc, char** argv) {
  std::vector<std::string> transports(argv + 1, argv + argc);
  if (transports.empty()) transports = {"inproc", "shm", "tcp"};
  int failed = 0;
  for (const std::string& transport : transports) {
    for (size_t payload_bytes : {size_t{8}, size_t{64}, size_t{1024}}) failed |= measure(transport, payload_bytes);
  }
  return failed;
}
