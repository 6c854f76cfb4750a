// ForkWorld: p processes of one program, made by fork, each with a Fabric of all. For benches and tests: addresses go
// through shared memory instead of a store.
// Thread: the only one of its process.   Owns: the children.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "transport/fabric.h"

namespace halay::bench {

// Runs `body` in `size` processes (rank 0 is this one) and gives the largest of their results; a child that is killed
// counts as 128 + signal.
int run_forked(int32_t size, const std::string& transport, const std::function<int(transport::Fabric&)>& body);

}  // namespace halay::bench
