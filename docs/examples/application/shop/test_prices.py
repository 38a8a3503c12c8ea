"""What has to hold of a total."""

import unittest

from prices import total


class Totals(unittest.TestCase):
    def test_a_total_is_the_sum(self) -> None:
        self.assertEqual(total([100, 250]), 350)

    def test_ten_items_are_cheaper(self) -> None:
        self.assertEqual(total([100] * 10), 900)
