#include <gtest/gtest.h>

#include "negotiate/linked_list.h"
#include "negotiate/member_set.h"

namespace halay::negotiate {
namespace {

TEST(MemberSet, CountsEachMemberOnce) {
  MemberSet set(130);
  EXPECT_TRUE(set.empty());
  for (const int member : {129, 0, 64, 0, 63}) set.set(member);
  EXPECT_EQ(set.count(), 4);
  EXPECT_TRUE(set.test(64));
  EXPECT_FALSE(set.test(65));
  EXPECT_EQ(set.members(), (std::vector<int>{0, 63, 64, 129}));
  set.clear();
  EXPECT_TRUE(set.empty());
  EXPECT_FALSE(set.test(129));
}

struct Element {
  int number = 0;
  Link<Element> link;
};
using Elements = LinkedList<Element, &Element::link>;

std::vector<int> numbers(const Elements& list) {
  std::vector<int> out;
  for (const Element* element = list.front(); element; element = Elements::after(*element))
    out.push_back(element->number);
  return out;
}

TEST(LinkedList, KeepsTheOrderWhateverIsTakenOut) {
  Element a{1, {}}, b{2, {}}, c{3, {}};
  Elements list;
  for (Element* element : {&a, &b, &c}) list.push_back(*element);
  EXPECT_EQ(numbers(list), (std::vector<int>{1, 2, 3}));
  list.remove(b);
  list.remove(b);  // not in it: nothing happens
  EXPECT_FALSE(Elements::contains(b));
  EXPECT_EQ(numbers(list), (std::vector<int>{1, 3}));
  list.move_to_back(a);
  list.push_back(b);
  EXPECT_EQ(numbers(list), (std::vector<int>{3, 1, 2}));
  list.remove(b), list.remove(c), list.remove(a);
  EXPECT_EQ(list.front(), nullptr);
  list.push_back(c);
  EXPECT_EQ(numbers(list), (std::vector<int>{3}));
}

}  // namespace
}  // namespace halay::negotiate
