#include "transport/windows.h"

#include <gtest/gtest.h>

#include <vector>

namespace halay::transport {
namespace {

std::shared_ptr<Window> window() { return Window::on_heap(4096).value(); }

TEST(Windows, AreReadyWhenThoseOfAllMembersHaveArrivedInWhateverOrder) {
  Windows windows;
  windows.arrived(5, 2, window());  // a member that was quicker than we
  EXPECT_FALSE(windows.ready(5));
  windows.open(5, 0, std::vector<int32_t>{0, 1, 2}, window());
  EXPECT_FALSE(windows.ready(5));
  EXPECT_EQ(windows.view(5, 1).data, nullptr);
  windows.arrived(5, 1, window());
  EXPECT_TRUE(windows.ready(5));
  EXPECT_NE(windows.view(5, 1).data, nullptr);
}

TEST(Windows, OfAClosedLaneAreDroppedWhenTheyComeLate) {
  Windows windows;
  windows.open(5, 0, std::vector<int32_t>{0, 1}, window());
  windows.close(5);
  std::shared_ptr<Window> late = window();
  windows.arrived(5, 1, late);
  EXPECT_EQ(late.use_count(), 1);
  windows.open(5, 0, std::vector<int32_t>{0, 1}, window());  // the lane once more
  EXPECT_FALSE(windows.ready(5));
  windows.arrived(5, 1, late);
  EXPECT_TRUE(windows.ready(5));
}

TEST(Window, BeginsWithZeroFlagsAndKeepsItsPartsApart) {
  const auto one = window();
  const WindowView view = one->view();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 4096, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.lines) % 128, 0u);
  EXPECT_GE(view.lines, static_cast<std::byte*>(view.flags) + 4 * 128);
  EXPECT_GE(view.data, view.lines + 2 * 128);
  for (size_t i = 0; i < 4 * 128; ++i) EXPECT_EQ(static_cast<std::byte*>(view.flags)[i], std::byte{0});
}

TEST(WindowBytes, FallWithTheNumberOfRanks) {
  EXPECT_EQ(window_bytes_for(1), size_t{4} << 20);
  EXPECT_EQ(window_bytes_for(4), size_t{4} << 20);
  EXPECT_EQ(window_bytes_for(5), size_t{2} << 20);
  EXPECT_EQ(window_bytes_for(1000), size_t{256} << 10);
}

}  // namespace
}  // namespace halay::transport
