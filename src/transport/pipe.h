// Pipe: ordered bytes to and from one peer, never blocking. One file a transport implements it.
// Thread: whoever holds the engine's token.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace halay::transport {

class Pipe {
 public:
  virtual ~Pipe() = default;
  virtual std::string_view transport() const = 0;  // "inproc", "shm", "tcp"
  // Takes a prefix of the concatenated parts; returns how many bytes (0: no room now).
  virtual size_t write(std::span<const std::span<const std::byte>> parts) = 0;
  // Gives what is there, at most into.size() bytes (0: nothing now).
  virtual size_t read(std::span<std::byte> into) = 0;
  // The peer's end is closed and everything it sent has been read.
  virtual bool ended() = 0;
  // Makes what was written since the last call known to a peer that sleeps (one doorbell, and only if it sleeps).
  virtual void ring() = 0;
};

}  // namespace halay::transport
