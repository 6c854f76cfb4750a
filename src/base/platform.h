// What differs between processors and systems; the one home of #if.
// Thread: any (no state).
#pragma once

namespace halay {

// Tells the core that this is a spin: it saves power, and its twin thread gets on.
inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace halay
