// A list through its elements: adding, removing and moving to the end take constant time and no memory.
// Thread: any.   Owns: nothing; an element must be taken out before it dies.
#pragma once

#include "base/check.h"

namespace halay::negotiate {

template <typename T>
struct Link {
  T* before = nullptr;
  T* after = nullptr;
  bool in = false;
};

template <typename T, Link<T> T::* link>
class LinkedList {
 public:
  T* front() const { return front_; }
  static T* after(const T& element) { return (element.*link).after; }
  static bool contains(const T& element) { return (element.*link).in; }

  void push_back(T& element) {
    HALAY_ASSERT(!(element.*link).in);
    element.*link = {back_, nullptr, true};
    (back_ ? (back_->*link).after : front_) = &element;
    back_ = &element;
  }
  void remove(T& element) {
    Link<T>& own = element.*link;
    if (!own.in) return;
    (own.before ? (own.before->*link).after : front_) = own.after;
    (own.after ? (own.after->*link).before : back_) = own.before;
    own = {};
  }
  void move_to_back(T& element) {
    remove(element);
    push_back(element);
  }

 private:
  T* front_ = nullptr;
  T* back_ = nullptr;
};

}  // namespace halay::negotiate
